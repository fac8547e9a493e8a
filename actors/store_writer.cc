#include "actors/store_writer.h"

#include <utility>

#include "src/store/group_commit.h"

namespace weir::actors {
namespace {

struct Writer {
  explicit Writer(WriterActor::pointer self_pointer) : self(self_pointer) {}

  void submit(ownership::Replica::Write& write) {
    store::CommitItem item;
    item.completion = write.token;
    for (StoredRecord& record : write.records) {
      item.records.push_back({write.reg, std::move(record)});
    }
    for (AgedRecord& copy : write.copies) {
      item.records.push_back({write.reg, std::move(copy.record), copy.age_ns});
    }
    if (write.state) item.meta.emplace_back(meta_key(write.reg), encode(*write.state));
    if (!group.submit(std::move(item))) {
      tell({{write.token},
            failure(ErrorCode::unavailable, "", "too many writes wait for the disk")});
    }
    flush_soon();
  }

  /// Behind everything that already waits in the mailbox, so that one write takes it all.
  void flush_soon() {
    if (!std::exchange(flushing, true)) self->send(self, FlushAtom::value);
  }

  void flush() {
    flushing = false;
    write();
    if (group.waiting() > 0) flush_soon();
  }

  void write() {
    const auto batch = group.begin();
    if (!batch) return;
    Written done{{}, context.store->write(*batch)};
    report(done.status);
    for (const store::CommitDone& item : group.finish(done.status)) {
      done.tokens.push_back(item.completion);
    }
    tell(std::move(done));
  }

  /// After everything before it.
  void store(const StoreMeta& meta) {
    while (group.waiting() > 0) write();
    store::WriteBatch batch;
    batch.meta.emplace_back(meta.name, meta.value);
    const Status status = context.store->write(batch);
    report(status);
    if (status) self->send(context.links->replication, meta);
  }

  void tell(Written done) { self->send(context.links->replication, std::move(done)); }

  void report(const Status& status) {
    if (failing == !status) return;
    failing = !status;
    if (failing) {
      context.log->error(
          "a store write failed; this node owns nothing until it is restarted on a disk that works",
          {{"reason", status.error().message}});
    } else {
      context.log->info("store writes work again");
    }
  }

  WriterActor::pointer self;
  WriterContext context;
  store::GroupCommit group;
  bool flushing = false;
  bool failing = false;
};

WriterActor::behavior_type writer_behavior(WriterActor::stateful_pointer<Writer> self,
                                           const WriterContext& context) {
  Writer& writer = self->state;
  writer.context = context;
  return {
      [&writer](Writes& writes) {
        for (ownership::Replica::Write& write : writes.all) writer.submit(write);
      },
      [&writer](const StoreMeta& meta) { writer.store(meta); },
      [&writer](FlushAtom) { writer.flush(); },
  };
}

}  // namespace

WriterActor spawn_store_writer(caf::actor_system& system, const WriterContext& context) {
  return system.spawn<caf::detached>(writer_behavior, context);
}

}  // namespace weir::actors
