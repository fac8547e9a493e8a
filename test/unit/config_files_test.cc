// Goal: files on disk are read whole or refused with a reason, `weir validate` knows what each file
// is and compares them, and the samples of deploy/ mean what API.md says. Method: files in a
// directory of the test's own.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "src/base/hash.h"
#include "src/config/load.h"
#include "src/policy/supported.h"
#include "test/support/temporary_folder.h"
#include "test/unit/config_test_support.h"

namespace weir::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kPolicy = "version: 1\nlimits: [{name: api, scope: global, rate: 5/s}]\n";
const std::string kTopology =
    "version: 1\nregions: {eu: {nodes: [{name: eu-1, cluster: \"10.0.0.1:7070\"}]}}\n";

class ConfigFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const auto path = directory_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  const test::TemporaryFolder temporary_;
  const std::filesystem::path directory_ = temporary_.path();
};

TEST_F(ConfigFiles, GoodFilesAreRead) {
  const std::string file = write("p.yaml", kPolicy);
  const auto policy = load_policy(file);
  ASSERT_TRUE(policy) << to_string(policy.errors);
  EXPECT_EQ(policy.value->content_hash, hash_bytes(kPolicy));
  EXPECT_TRUE(load_topology(write("t.yaml", kTopology)));
  EXPECT_TRUE(load_node(write("n.yaml", "node: a\n")));
  std::filesystem::create_symlink(file, path("link"));
  EXPECT_TRUE(load_policy(path("link")));
}

TEST_F(ConfigFiles, BadFilesAreRefusedWithAReason) {
  const auto message = [](const std::string& file) {
    const auto parsed = load_policy(file);
    EXPECT_FALSE(parsed);
    return to_string(parsed.errors);
  };
  EXPECT_EQ(message(path("none")), path("none") + ": no such file, check the path\n");
  EXPECT_THAT(message(directory_.string()), HasSubstr("is a directory, name a file"));
  EXPECT_THAT(message(write("empty", "")), HasSubstr("empty:1:1: the file is empty"));
  EXPECT_THAT(message(write("nul", std::string(1, '\0') + kPolicy)), HasSubstr("1:1: byte 0x00"));
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(message(path("fifo")), HasSubstr("no regular file"));
  EXPECT_THAT(message(write("file", kPolicy) + "/below"), HasSubstr("no such file"));
  EXPECT_THAT(message(path(std::string(300, 'x'))), HasSubstr("cannot be read: File name"));
  if (geteuid() != 0) {
    const std::string secret = write("secret", kPolicy);
    std::filesystem::permissions(secret, std::filesystem::perms::none);
    EXPECT_THAT(message(secret), HasSubstr("cannot be opened: Permission denied"));
  }
}

TEST_F(ConfigFiles, AFileAboveTheLimitIsRefused) {
  const std::string file = write("large", kPolicy);
  std::filesystem::resize_file(file, kMaxFileBytes + 1);  // sparse
  EXPECT_THAT(to_string(read_file(file).errors), HasSubstr("larger than 64 MiB"));
  std::filesystem::resize_file(file, kMaxFileBytes);
  EXPECT_TRUE(read_file(file));
}

FileKind kind_of(const std::string& file) { return validate_files({file}).files.at(0).kind; }

TEST_F(ConfigFiles, FilesAreRecognisedByTheirKeysBrokenOnesToo) {
  EXPECT_EQ(kind_of(write("a", kPolicy)), FileKind::policy);
  EXPECT_EQ(kind_of(write("b", kTopology)), FileKind::topology);
  EXPECT_EQ(kind_of(write("c", "node: x\n")), FileKind::node);
  EXPECT_EQ(kind_of(write("d", "version: 1\nlimit: []\ncustomers: {}\n")), FileKind::policy);
  EXPECT_EQ(kind_of(write("e", "version: 1\nlimts: []\n")), FileKind::policy);
  EXPECT_EQ(kind_of(write("f", "version: 1\nregion: {eu: 1}\nreplicas: {}\n")), FileKind::topology);
  EXPECT_EQ(kind_of(write("g", "policy: p.yaml\ntopology: t.yaml\nregoin: eu\n")), FileKind::node);
  EXPECT_EQ(kind_of(write("h", "region: eu\n")), FileKind::node);
  EXPECT_EQ(kind_of(write("i", "apiVersion: v1\nkind: Pod\n")), FileKind::unknown);
  EXPECT_EQ(kind_of(write("j", "- limits\n")), FileKind::unknown);
  EXPECT_EQ(kind_of(write("k", "limits: [\n")), FileKind::unknown);
  const auto report = validate_files({write("e", "version: 1\nlimts: []\n")});
  ASSERT_EQ(report.errors.size(), 2U) << to_string(report.errors);
  EXPECT_THAT(to_string(report.errors[0]), HasSubstr("`limits` is missing"));
  EXPECT_THAT(to_string(report.errors[1]), HasSubstr("e:2:1: policy: unknown key `limts`"));
  EXPECT_THAT(to_string(validate_files({path("i")}).errors), HasSubstr("not a file of Weir"));
}

TEST_F(ConfigFiles, TheReportNamesEachFile) {
  const auto report = validate_files(
      {write("p", kPolicy), path("none"), write("t", "version: 0\nregions: {}\n"), write("e", "")});
  EXPECT_FALSE(report.valid());
  ASSERT_EQ(report.files.size(), 4U);
  EXPECT_EQ(report.files[0].errors, 0U);
  EXPECT_EQ(report.files[1].errors, 1U);
  EXPECT_EQ(report.files[2].errors, 2U);
  EXPECT_EQ(report.files[3].errors, 1U);
  EXPECT_STREQ(to_string(report.files[2].kind), "topology");
  EXPECT_EQ(report.errors.size(), 4U);
  EXPECT_TRUE(validate_files({path("p")}).valid());
}

TEST_F(ConfigFiles, NodesAreComparedWithTheTopology) {
  write("t.yaml", kTopology);
  write("in.yaml", "node: eu-1\ntopology: t.yaml\n");
  write("edge.yaml", "node: x\nregion: us\nrole: [edge]\ntopology: t.yaml\n");
  write("out.yaml", "topology: t.yaml\nnode: eu-2\n");
  write("region.yaml", "node: eu-1\nregion: us\ntopology: t.yaml\n");
  write("alone.yaml", "node: other\n");
  const auto errors = [&](std::initializer_list<const char*> names) {
    std::vector<std::string> paths;
    for (const auto* name : names) paths.push_back(path(name));
    return to_string(validate_files(paths).errors);
  };
  EXPECT_EQ(errors({"t.yaml", "in.yaml", "edge.yaml", "alone.yaml"}), "");
  EXPECT_EQ(errors({"out.yaml"}), "");  // alone it cannot be known
  EXPECT_THAT(errors({"out.yaml", "t.yaml"}),
              HasSubstr("out.yaml:2:7: node: owner `eu-2` is not in the topology"));
  EXPECT_THAT(errors({"t.yaml", "region.yaml"}),
              HasSubstr("region.yaml:2:9: region: `eu-1` stands in region `eu`"));
  EXPECT_THAT(errors({"in.yaml", "region.yaml"}), HasSubstr("is also the node of"));
}

TEST_F(ConfigFiles, EachNodeIsComparedWithTheTopologyItNames) {
  write("t.yaml", kTopology);
  write("u.yaml", "version: 1\nregions: {us: {nodes: [{name: us-1, cluster: \"h:1\"}]}}\n");
  write("us.yaml", "node: us-1\ntopology: u.yaml\n");
  write("eu.yaml", "node: eu-9\ntopology: ./t.yaml\n");
  const auto report =
      validate_files({path("t.yaml"), path("u.yaml"), path("us.yaml"), path("eu.yaml")});
  ASSERT_EQ(report.errors.size(), 1U) << to_string(report.errors);
  EXPECT_THAT(to_string(report.errors[0]), HasSubstr("eu.yaml:1:7: node: owner `eu-9`"));
}

TEST(ConfigSamples, AreValidAndFitEachOther) {
  const std::string samples = WEIR_SAMPLES;
  const auto report = validate_files(
      {samples + "/node.yaml", samples + "/topology.yaml", samples + "/policy.yaml"});
  EXPECT_TRUE(report.valid()) << to_string(report.errors);
  EXPECT_TRUE(report.warnings.empty()) << to_string(report.warnings);
  EXPECT_EQ(report.files[0].kind, FileKind::node);
  EXPECT_EQ(report.files[1].kind, FileKind::topology);
  EXPECT_EQ(report.files[2].kind, FileKind::policy);
}

TEST(ConfigSamples, TheNodeShowsTheDefaults) {
  const std::string samples = WEIR_SAMPLES;
  const auto node = load_node(samples + "/node.yaml");
  ASSERT_TRUE(node) << to_string(node.errors);
  NodeConfig expected;
  expected.node = "eu-1";
  expected.region = "eu";
  expected.data = samples + "/weir-data";
  expected.topology = samples + "/topology.yaml";
  expected.policy = samples + "/policy.yaml";
  EXPECT_EQ(*node.value, expected);
}

TEST(ConfigSamples, TheTopologyIsApiMds) {
  const auto topology = load_topology(std::string(WEIR_SAMPLES) + "/topology.yaml");
  ASSERT_TRUE(topology) << to_string(topology.errors);
  EXPECT_EQ(topology.value->version, 7U);
  EXPECT_EQ(topology.value->replica_count, 3U);
  ASSERT_NE(topology.value->find_node("eu-1"), nullptr);
  EXPECT_EQ(topology.value->find_node("eu-1")->cluster, (Endpoint{"10.0.0.1", 7070}));
  EXPECT_EQ(topology.value->pins.at("acme"), "eu");
}

TEST(ConfigSamples, ThePolicyIsApiMds) {
  const auto parsed = load_policy(std::string(WEIR_SAMPLES) + "/policy.yaml");
  ASSERT_TRUE(parsed) << to_string(parsed.errors);
  const PolicyDefinition& policy = *parsed.value;
  EXPECT_EQ(policy.version, 12U);
  ASSERT_EQ(policy.limits.size(), 4U);
  const auto& [guard, api, login, monthly] =
      std::tie(policy.limits[0], policy.limits[1], policy.limits[2], policy.limits[3]);
  EXPECT_EQ(guard.name, "node-guard");
  EXPECT_EQ(guard.scope, Scope::node);
  EXPECT_TRUE(guard.by.empty());
  EXPECT_EQ(guard.numbers, (LimitNumbers{20000, 20000, kSecond}));
  EXPECT_EQ(api.numbers, (LimitNumbers{100, 600, kMinute}));
  EXPECT_THAT(api.by, ElementsAre("customer"));
  EXPECT_THAT(login.match, ElementsAre(AttributeMatch{"route", "POST /login", false}));
  EXPECT_THAT(login.by, ElementsAre("customer", "ip"));
  EXPECT_EQ(login.numbers, (LimitNumbers{5, 5, kMinute}));
  EXPECT_TRUE(login.strict);
  EXPECT_EQ(login.on_unreachable, FailurePolicy::deny);
  EXPECT_EQ(monthly.algorithm, Algorithm::fixed_window);
  EXPECT_EQ(monthly.numbers, (LimitNumbers{1000000, 0, 0}));
  EXPECT_EQ(monthly.window, Window::month);
  EXPECT_EQ(monthly.timezone, "Europe/Berlin");
  EXPECT_TRUE(monthly.shadow);
  EXPECT_EQ(policy.default_plan, "free");
  EXPECT_EQ(policy.plans.at("pro").at("api").numbers, (LimitNumbers{1000, 6000, kMinute}));
  EXPECT_EQ(policy.customers.at("acme").plan, "pro");
  EXPECT_EQ(policy.customers.at("acme").limits.at("api").numbers,
            (LimitNumbers{100000, 100000, kMinute}));
  EXPECT_EQ(policy.customers.at("mallory").limits.at("api").kind, LimitOverride::Kind::blocked);
}

TEST(ConfigSamples, ValidateAcceptsThePolicyAsItIsServed) {
  const auto report =
      validate_files({std::string(WEIR_SAMPLES) + "/policy.yaml"}, policy::check_limit_supported);
  EXPECT_TRUE(report.errors.empty()) << to_string(report.errors);
}

}  // namespace
}  // namespace weir::config
