// Goal: no text, however damaged, crashes a parser, and none that is accepted has lost its limits.
// Method: seeded random damage to the samples, read as each kind of file.
#include <fstream>
#include <sstream>

#include "src/base/random.h"
#include "src/config/parse.h"
#include "test/unit/config_test_support.h"

namespace weir::config {
namespace {

constexpr int kRounds = 4000;

std::string sample(const std::string& name) {
  std::ifstream file(std::string(WEIR_SAMPLES) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// One to four changes: a byte, a word of YAML, a cut, a swap of lines.
std::string damaged(std::string text, Random& random) {
  static const char* const kPieces[] = {
      "{",  "}",  "[",  "]",   ":",   ": ", ",", "#", "&a", "*a", "!",  "|",    ">",    "'",   "\"",
      "\\", "\n", "\t", "---", "...", "?",  "-", "~", "<<", "0",  "-1", "\x04", "\xC3", "null"};
  for (std::uint64_t changes = 1 + random.below(4); changes > 0 && !text.empty(); --changes) {
    const auto at = static_cast<std::size_t>(random.below(text.size()));
    switch (random.below(6)) {
      case 0:
        text[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        text.insert(at, kPieces[random.below(std::size(kPieces))]);
        break;
      case 2:
        text.erase(at, 1 + random.below(8));
        break;
      case 3:
        text.resize(at);
        break;
      case 4:
        text[at] = static_cast<char>(' ' + random.below(95));
        break;
      default:
        text.insert(at, text.substr(static_cast<std::size_t>(random.below(text.size())), 20));
        break;
    }
  }
  return text;
}

template <typename T>
void expect_value_or_errors(const Parsed<T>& parsed, const std::string& text) {
  EXPECT_NE(parsed.value.has_value(), !parsed.errors.empty()) << text;
  for (const auto& error : parsed.errors) {
    EXPECT_FALSE(error.message.empty());
    EXPECT_LT(error.message.size(), 1000U) << error.message;
  }
}

TEST(ConfigMutation, DamagedPoliciesAreRefusedOrStillHaveLimits) {
  const std::string good = sample("policy.yaml");
  Random random(1);
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = damaged(good, random);
    const auto parsed = parse_policy(text, "p.yaml");
    expect_value_or_errors(parsed, text);
    if (!parsed) continue;
    ++accepted;
    EXPECT_FALSE(parsed.value->limits.empty()) << text;
    EXPECT_GE(parsed.value->version, 1U) << text;
    for (const auto& limit : parsed.value->limits) {
      EXPECT_GE(limit.numbers.capacity, 1) << text;
      EXPECT_FALSE(limit.name.empty()) << text;
    }
  }
  EXPECT_GT(accepted, 0);        // else the damage is too great to show anything
  EXPECT_LT(accepted, kRounds);  // else there is none
}

TEST(ConfigMutation, DamagedTopologiesAreRefusedOrStillHaveNodes) {
  const std::string good = sample("topology.yaml");
  Random random(2);
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = damaged(good, random);
    const auto parsed = parse_topology(text, "t.yaml");
    expect_value_or_errors(parsed, text);
    if (!parsed) continue;
    EXPECT_FALSE(parsed.value->regions.empty()) << text;
    EXPECT_EQ(parsed.value->replica_count % 2, 1U) << text;
  }
}

TEST(ConfigMutation, DamagedNodesAreRefusedOrConsistent) {
  const std::string good = sample("node.yaml");
  Random random(3);
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = damaged(good, random);
    const auto parsed = parse_node(text, "n.yaml");
    expect_value_or_errors(parsed, text);
    if (parsed) {
      EXPECT_TRUE(check_node_config(*parsed.value)) << text;
    }
  }
}

TEST(ConfigMutation, EachCutOfAPolicyIsRefusedOrAWholePolicy) {
  const std::string good = sample("policy.yaml");
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto parsed = parse_policy(good.substr(0, size), "p.yaml");
    expect_value_or_errors(parsed, good.substr(0, size));
    if (parsed) {
      EXPECT_FALSE(parsed.value->limits.empty()) << size;
    }
  }
}

TEST(ConfigMutation, NoiseIsRefused) {
  Random random(4);
  for (int i = 0; i < kRounds; ++i) {
    std::string text(static_cast<std::size_t>(random.below(200)), ' ');
    for (char& c : text) c = static_cast<char>(random.below(256));
    EXPECT_FALSE(parse_policy(text, "p.yaml"));
    EXPECT_FALSE(parse_topology(text, "t.yaml"));
    expect_value_or_errors(parse_node(text, "n.yaml"), text);
  }
}

}  // namespace
}  // namespace weir::config
