// Goal: nodes with certificates form a cluster; who has none, or a foreign one, is kept out with a
// line in the log of both; a broken certificate file ends nobody. Method: real processes, which
// start and re-read files with certificates of the test's own.
#include <signal.h>

#include <boost/json.hpp>
#include <fstream>
#include <iterator>

#include "test/integration/fixture.h"
#include "test/support/certificates.h"

namespace weir::test {
namespace {

class Security : public ClusterTest {
 protected:
  static constexpr const char* kPolicy =
      "version: 1\nlimits:\n  - {name: api, scope: global, rate: 10/h, on_unreachable: deny}\n";
  static constexpr const char* kRefused = "no connection with a peer";

  static std::string line(const TestCa::Files& files) {
    return "tls: {cluster: {certificate: \"" + files.certificate + "\", key: \"" + files.key +
           "\", ca: \"" + files.ca + "\"}}";
  }
  static std::string contents(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// How many lines of a node's log hold both.
  static int lines_with(const cli::LocalNode& node, const std::string& one,
                        const std::string& other) {
    std::ifstream in(node.log);
    int count = 0;
    for (std::string text; std::getline(in, text);) {
      if (text.find(one) != std::string::npos && text.find(other) != std::string::npos) ++count;
    }
    return count;
  }
  /// Starts a node that is gone again, with another line for `tls` in its file; empty: none.
  void restart_with(const cli::LocalNode& node, const std::string& tls) {
    std::ifstream in(node.config);
    std::string text;
    for (std::string each; std::getline(in, each);) {
      if (!each.starts_with("tls:")) text += each + "\n";
    }
    in.close();
    std::ofstream(node.config) << text << tls << "\n";
    const Status restarted = cluster_->restart(node.name);
    ASSERT_TRUE(restarted) << restarted.error().message;
  }
  bool sees(const cli::LocalNode& node, const std::string& other) const {
    const boost::json::object now = status(node);
    const auto* members = now.if_contains("members");
    if (members == nullptr) return false;
    for (const auto& member : members->as_array()) {
      if (member.at("node").as_string() == other) return member.at("alive").as_bool();
    }
    return false;
  }
  boost::json::value last_error(const cli::LocalNode& node) const {
    const boost::json::object now = status(node);
    const auto* security = now.if_contains("security");
    return security == nullptr ? nullptr : security->at("tls.cluster").at("last_error");
  }
};

TEST_F(Security, OnlyNodesOfTheClustersCaAreLetIn) {
  const TestCa ca(folder_, "own");
  const auto own = ca.issue("node");
  ASSERT_NO_FATAL_FAILURE(start(1, 3, kPolicy, {line(own)}));
  const cli::LocalNode& third = node(2);
  ASSERT_NO_FATAL_FAILURE(spend(node(0).http, "acme", {}, 1));

  const TestCa foreign_ca(folder_, "foreign");
  auto foreign = foreign_ca.issue("stranger");
  ASSERT_TRUE(cluster_->kill(third.name, SIGKILL));
  ASSERT_TRUE(eventually([&] { return !sees(node(0), third.name); }));
  ASSERT_NO_FATAL_FAILURE(restart_with(third, line(foreign)));
  for (const std::size_t i : {0U, 1U, 2U}) {
    EXPECT_TRUE(eventually([&] { return lines_with(node(i), kRefused, "certificate") > 0; }))
        << node(i).name << "\n"
        << contents(node(i).log);
  }
  EXPECT_FALSE(sees(node(0), third.name));
  EXPECT_FALSE(sees(third, node(0).name));

  ASSERT_TRUE(cluster_->kill(third.name, SIGKILL));
  ASSERT_NO_FATAL_FAILURE(restart_with(third, ""));
  EXPECT_TRUE(eventually([&] { return lines_with(third, kRefused, "does it want TLS?") > 0; }));
  EXPECT_TRUE(eventually([&] { return lines_with(node(0), kRefused, "it speaks no TLS") > 0; }))
      << contents(node(0).log);
  EXPECT_FALSE(sees(node(0), third.name));

  ASSERT_TRUE(cluster_->kill(third.name, SIGKILL));
  ASSERT_NO_FATAL_FAILURE(restart_with(third, line(ca.issue("third"))));
  EXPECT_TRUE(eventually([&] { return sees(node(0), third.name) && sees(third, node(0).name); }));
}

TEST_F(Security, ABrokenCertificateEndsNobody) {
  const TestCa ca(folder_, "own");
  const auto own = ca.issue("node");
  ASSERT_NO_FATAL_FAILURE(start(1, 2, kPolicy, {line(own)}));
  EXPECT_TRUE(last_error(node(0)).is_null());
  const std::string good = contents(own.certificate);
  std::ofstream(own.certificate) << "-----BEGIN CERTIFICATE-----\nnonsense\n";
  ASSERT_TRUE(cluster_->kill(node(0).name, SIGHUP));
  ASSERT_TRUE(eventually([&] { return last_error(node(0)).is_string(); }));

  // A new peer, whose connection makes node 0 read its certificates.
  ASSERT_TRUE(cluster_->kill(node(1).name, SIGKILL));
  ASSERT_TRUE(eventually([&] { return !sees(node(0), node(1).name); }));
  ASSERT_NO_FATAL_FAILURE(restart_with(node(1), line(ca.issue("second"))));
  EXPECT_TRUE(eventually([&] { return sees(node(0), node(1).name); }));
  ASSERT_NO_FATAL_FAILURE(spend(node(0).http, "acme", {}, 1));
  expect_no_deaths();

  std::ofstream(own.certificate) << good;
  ASSERT_TRUE(cluster_->kill(node(0).name, SIGHUP));
  EXPECT_TRUE(eventually([&] { return last_error(node(0)).is_null(); }));
}

}  // namespace
}  // namespace weir::test
