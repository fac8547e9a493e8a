#include "actors/store_writer.h"

#include <map>
#include <unordered_map>
#include <utility>

#include "src/store/group_commit.h"
#include "src/telemetry/names.h"

namespace weir::actors {
namespace {

struct Writer {
  struct Pending {
    caf::typed_response_promise<Stored> promise;
    Nanos since_ns = 0;
  };

  caf::result<Stored> submit(WriterActor::pointer self, CommitRecords& commit) {
    store::CommitItem item;
    item.completion = ++last_completion;
    std::uint64_t& sequence = sequences[commit.reg];
    for (auto& [bucket, ledger] : commit.records) {
      item.records.push_back(
          {commit.reg, {std::move(bucket), {context.epoch, ++sequence}, std::move(ledger)}});
    }
    if (!group.submit(std::move(item))) {
      return Stored{failure(ErrorCode::unavailable, "", "too many commits wait for the disk")};
    }
    auto promise = self->make_response_promise<Stored>();
    pending.emplace(last_completion, Pending{promise, context.clock->boot_ns()});
    flush_soon(self);
    return promise;
  }

  /// Behind everything that already waits in the mailbox, so that one write takes it all.
  void flush_soon(WriterActor::pointer self) {
    if (!std::exchange(flushing, true)) self->send(self, FlushAtom::value);
  }

  void flush(WriterActor::pointer self) {
    flushing = false;
    write();
    if (group.waiting() > 0) flush_soon(self);
  }

  void write() {
    const auto batch = group.begin();
    if (!batch) return;
    const Status status = context.store->write(*batch);
    const Nanos now_ns = context.clock->boot_ns();
    report(status);
    for (const store::CommitDone& done : group.finish(status)) {
      auto waiting = pending.extract(done.completion);
      duration->observe(now_ns - waiting.mapped().since_ns);
      waiting.mapped().promise.deliver(Stored{done.status});
    }
  }

  Stored sync() {
    while (group.waiting() > 0) write();
    return {};
  }

  void report(const Status& status) {
    if (failing == !status) return;
    failing = !status;
    if (failing) {
      context.log->error(
          "a store write failed; this node grants nothing until it is restarted on a disk that "
          "works",
          {{"reason", status.error().message}});
    } else {
      context.log->info("store writes work again");
    }
  }

  WriterContext context;
  telemetry::DurationHistogram* duration = nullptr;
  store::GroupCommit group;
  std::unordered_map<std::uint64_t, Pending> pending;  ///< by completion
  std::uint64_t last_completion = 0;
  std::map<RegisterId, std::uint64_t> sequences;
  bool flushing = false;
  bool failing = false;
};

WriterActor::behavior_type writer_behavior(WriterActor::stateful_pointer<Writer> self,
                                           const WriterContext& context) {
  Writer& writer = self->state;
  writer.context = context;
  writer.duration = &context.metrics->histogram(telemetry::metric::kCommitDuration.name,
                                                telemetry::metric::kCommitDuration.help);
  return {
      [self](CommitRecords& commit) { return self->state.submit(self, commit); },
      [&writer](SyncAtom) { return writer.sync(); },
      [self](FlushAtom) { self->state.flush(self); },
  };
}

ReaderActor::behavior_type reader_behavior(ReaderActor::pointer, const store::Store* store) {
  return {
      [store](const LoadRecord& load) { return Loaded{store->read_record(load.reg, load.bucket)}; },
      [store](const LoadCustomer& load) {
        return LoadedCustomer{store->read_customer(load.reg, load.customer)};
      },
  };
}

}  // namespace

WriterActor spawn_store_writer(caf::actor_system& system, const WriterContext& context) {
  return system.spawn<caf::detached>(writer_behavior, context);
}

ReaderActor spawn_store_reader(caf::actor_system& system, const store::Store& store) {
  return system.spawn<caf::detached>(reader_behavior, &store);
}

}  // namespace weir::actors
