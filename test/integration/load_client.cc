// One client process: load against some nodes about one customer, the history into a file.
//   integration_load_client HISTORY CONNECTIONS_PER_NODE CHECKS_PER_S CHECKS CUSTOMER URL...
// Exit status 0 when every check was answered, 1 when some were not, 2 for wrong usage.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "src/net/http_client.h"
#include "test/support/load.h"

int main(int argc, char** argv) {
  constexpr int kFirstNode = 6;
  if (argc <= kFirstNode) return 2;
  weir::test::LoadShape shape;
  shape.connections_per_node = std::atoi(argv[2]);
  shape.checks_per_s = std::atoll(argv[3]);
  shape.checks = std::atoll(argv[4]);
  shape.customer = argv[5];
  for (int i = kFirstNode; i < argc; ++i) {
    const auto url = weir::net::parse_url(argv[i]);
    if (!url) return 2;
    shape.nodes.push_back(url->endpoint);
  }
  if (shape.connections_per_node < 1 || shape.checks_per_s < 1 || shape.checks < 1) return 2;
  weir::test::Load load(std::move(shape));
  const weir::test::History history = load.finish();
  if (!weir::test::write_history(argv[1], history)) return 2;
  for (const auto& complaint : load.complaints()) std::fprintf(stderr, "%s\n", complaint.c_str());
  return weir::test::tally(history).failed == 0 ? 0 : 1;
}
