// Goal: an owner node of one region names the customers that an edge of another admits and denies.
// Method: real processes, load at one edge, the command that an operator runs.
#include <array>
#include <boost/json.hpp>
#include <sstream>

#include "src/cli/exit_status.h"
#include "src/cli/program.h"
#include "test/integration/fixture.h"

namespace weir::test {
namespace {

using Top = ClusterTest;

/// What `weir top --once --json` says at a node; empty when it cannot.
boost::json::object top_at(const Endpoint& admin) {
  std::ostringstream out;
  std::ostringstream err;
  const std::string url = "http://" + to_string(admin);
  const std::array arguments{"weir", "top", "--once", "--json", "--admin", url.c_str()};
  const int status =
      cli::run_program(static_cast<int>(arguments.size()), arguments.data(), {out, err});
  EXPECT_TRUE(status == cli::kFine || status == cli::kUnreachable) << err.str();
  boost::system::error_code error;
  const auto value = boost::json::parse(out.str(), error);
  return error || !value.is_object() ? boost::json::object() : value.get_object();
}

/// A rate of `acme` in one of the lists; 0 when it is not there.
std::int64_t rate(const boost::json::object& top, const char* list, const char* member) {
  if (!top.contains(list)) return 0;
  for (const auto& each : top.at(list).as_array()) {
    if (each.at("customer").as_string() == "acme") return each.at(member).to_number<std::int64_t>();
  }
  return 0;
}

TEST_F(Top, AnOwnerNamesTheCustomersOfARemoteEdge) {
  ASSERT_NO_FATAL_FAILURE(start(2, 5,
                                "version: 1\nlimits:\n  - {name: api, scope: global, rate: 50/s, "
                                "burst: 50, on_unreachable: deny}\n",
                                quick_disk()));
  const cli::LocalNode& edge = node(4);
  ASSERT_EQ(edge.region, "us");
  ASSERT_FALSE(edge.owner);
  const cli::LocalNode& owner = node(0);
  ASSERT_EQ(owner.region, "eu");
  ASSERT_TRUE(owner.owner);
  // Far more than is needed; it ends with the test.
  Load load(load_of({edge.http}, 50, 4, kMinute));
  boost::json::object top;
  EXPECT_TRUE(eventually([&] {
    top = top_at(owner.admin);
    return rate(top, "customers", "checks_per_s") > rate(top, "customers", "denied_per_s") &&
           rate(top, "denied", "denied_per_s") > 0 && top.at("edges").to_number<int>() == 5;
  })) << boost::json::serialize(top);
  EXPECT_EQ(top.at("node").as_string(), owner.name.c_str());
  EXPECT_LE(rate(top, "denied", "denied_per_s"), rate(top, "denied", "checks_per_s"));
}

}  // namespace
}  // namespace weir::test
