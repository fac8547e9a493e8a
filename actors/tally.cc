#include "actors/tally.h"

#include <utility>

namespace weir::actors {

void RequestTally::sent(const LeaseRequest& request, Nanos now_ns) {
  forget_older(now_ns);
  unanswered_ += older_.erase(request.lessee.incarnation);
  const auto [waiting, fresh] = recent_.try_emplace(request.lessee.incarnation, request.sequence);
  if (fresh) return;
  ++unanswered_;
  waiting->second = request.sequence;
}

std::optional<LeaseStatus> RequestTally::answered(const LeaseAnswer& answer) {
  for (Waiting* waiting : {&recent_, &older_}) {
    const auto found = waiting->find(answer.lessee.incarnation);
    if (found == waiting->end() || found->second != answer.sequence) continue;
    waiting->erase(found);
    return answer.status;
  }
  return std::nullopt;
}

void RequestTally::forget_older(Nanos now_ns) {
  if (now_ns - turned_ns_ < kUnansweredNs) return;
  turned_ns_ = now_ns;
  unanswered_ += older_.size();
  older_ = std::exchange(recent_, {});
}

std::uint64_t RequestTally::take_unanswered(Nanos now_ns) {
  forget_older(now_ns);
  return std::exchange(unanswered_, 0);
}

}  // namespace weir::actors
