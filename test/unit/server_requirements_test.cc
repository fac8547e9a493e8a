// Goal: what this version does not do is refused by name, never ignored.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "src/server/requirements.h"

namespace weir::server {
namespace {

using config::NodeConfig;

std::string refused(const std::function<void(NodeConfig&)>& change) {
  NodeConfig config;
  change(config);
  const Status served = check_served(config);
  if (served) return "";
  EXPECT_EQ(served.error().code, ErrorCode::unsupported);
  return served.error().field;
}

TEST(Requirements, DefaultsAndMemoryAreServed) {
  EXPECT_EQ(refused([](NodeConfig&) {}), "");
  EXPECT_EQ(refused([](NodeConfig& c) { c.authority = config::Authority::memory; }), "");
  EXPECT_EQ(refused([](NodeConfig& c) { c.insecure = true; }), "");
}

TEST(Requirements, NameWhatIsNotServed) {
  EXPECT_EQ(refused([](NodeConfig& c) { c.authority = config::Authority::redis; }), "authority");
}

}  // namespace
}  // namespace weir::server
