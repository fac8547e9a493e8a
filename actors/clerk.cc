#include "actors/clerk.h"

#include <chrono>
#include <utility>

#include "actors/describe.h"

namespace weir::actors {
namespace {

struct Clerk {
  explicit Clerk(ClerkActor::pointer self_pointer) : self(self_pointer) {}

  void interview(Interview& interview) {
    const codec::OwnerQuery& query = interview.question.query;
    auto records = store->read_customer(query.reg, query.customer);
    codec::OwnerReply& reply = interview.reply;
    if (!records) {
      reply.error = records.error().message;
      return reply_to(self, *owners->links, interview.question.node, std::move(reply));
    }
    // A customer may have a bucket for each address that ever came, and no reply has room for more.
    if (records->size() > codec::kMaxBucketsPerReply) records->resize(codec::kMaxBucketsPerReply);
    ownership::OwnerConfig config = owners->config;
    config.generation = interview.generation;
    auto stored = stored_views(*records, config, reply.epoch, book,
                               interview.now.at(owners->clock->boot_ns()));
    if (!interview.owner) return conclude(interview, std::move(stored), {});
    self->request(interview.owner, std::chrono::nanoseconds(kQueryDeadlineNs), DescribeAtom::value)
        .then(
            [this, interview, stored](Views& active) mutable {
              conclude(interview, stored, std::move(active.buckets));
            },
            [this, interview, stored](const caf::error&) mutable {
              conclude(interview, stored, {});
            });
  }

  /// What the owner holds in memory, and what is only stored.
  void conclude(Interview& interview, std::vector<ownership::BucketView> stored,
                std::vector<ownership::BucketView> active) {
    interview.reply.found = true;
    interview.reply.buckets = describe_buckets(merge_views(std::move(stored), std::move(active)));
    reply_to(self, *owners->links, interview.question.node, std::move(interview.reply));
  }

  ClerkActor::pointer self;
  const store::Store* store = nullptr;
  std::shared_ptr<const OwnerContext> owners;
  Book book;
};

ClerkActor::behavior_type clerk_behavior(ClerkActor::stateful_pointer<Clerk> self,
                                         const store::Store* store,
                                         std::shared_ptr<const OwnerContext> owners,
                                         const Book& book) {
  Clerk* clerk = &self->state;
  clerk->store = store;
  clerk->owners = std::move(owners);
  clerk->book = book;
  return {
      [clerk](Interview& interview) { clerk->interview(interview); },
      [clerk](const Book& changed) { clerk->book = changed; },
  };
}

}  // namespace

ClerkActor spawn_clerk(caf::actor_system& system, const store::Store& store,
                       std::shared_ptr<const OwnerContext> owners, const Book& book) {
  return system.spawn<caf::detached>(clerk_behavior, &store, std::move(owners), book);
}

}  // namespace weir::actors
