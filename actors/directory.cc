#include "actors/directory.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/describe.h"
#include "src/base/hash.h"

namespace weir::actors {
namespace {

/// (register, customer) as one key; injective.
std::string owner_key(const RegisterId& reg, std::string_view customer) {
  std::string key(1, static_cast<char>(reg.kind));
  append_varint(key, reg.region.size());
  key.append(reg.region).append(customer);
  return key;
}

struct Directory {
  struct Entry {
    OwnerActor owner;
    bool ending = false;             ///< has been told that it may end
    std::vector<LeaseRequest> held;  ///< come since then
  };
  using Entries = std::unordered_map<std::string, Entry, StringHash, std::equal_to<>>;

  explicit Directory(DirectoryActor::pointer self_pointer) : self(self_pointer) {}

  const Links& links() const { return *context.owners->links; }

  void request(LeaseRequest& request) {
    if (stopping) return;
    const auto key = decode_bucket_key(request.bucket);
    if (!key || key->scope == Scope::node) return;
    const RegisterId reg = context.placement->register_for(key->scope, key->region, key->customer);
    const auto& replicas = context.placement->replicas(reg);
    if (reg != request.reg || replicas.empty() || replicas.front() != links().node) {
      return refuse(request, LeaseStatus::not_owner, replicas.empty() ? "" : replicas.front());
    }
    std::string name = owner_key(reg, key->customer);
    auto found = entries.find(name);
    if (found == entries.end()) {
      if (entries.size() >= context.most_owners) return overloaded(request);
      found = start(std::move(name), reg);
    }
    Entry& entry = found->second;
    if (!entry.ending) {
      self->send(entry.owner, std::move(request));
    } else if (entry.held.size() < kMaxHeldRequests) {
      entry.held.push_back(std::move(request));
    } else {
      refuse(request, LeaseStatus::pending, "");
    }
  }

  void refuse(const LeaseRequest& request, LeaseStatus status, const std::string& hint) {
    LeaseAnswer answer;
    answer.bucket = request.bucket;
    answer.lessee = request.lessee;
    answer.sequence = request.sequence;
    answer.status = status;
    answer.policy_version = book->version();
    answer.epoch = context.owners->epoch;
    answer.owner_hint = hint;
    route(self, links(), std::move(answer));
  }

  void overloaded(const LeaseRequest& request) {
    refuse(request, LeaseStatus::pending, "");
    if (std::exchange(full, true)) return;
    context.log->warn("no room for another owner; new customers wait",
                      {{"owners", entries.size()}});
  }

  Entries::iterator start(std::string name, const RegisterId& reg) {
    Entry entry{spawn_owner(self->home_system(), context.owners, reg, book), false, {}};
    self->monitor(entry.owner);
    const auto id = entry.owner->id();
    const auto placed = entries.emplace(std::move(name), std::move(entry)).first;
    by_id[id] = &*placed;
    ++*context.active;
    return placed;
  }

  /// The entry of the owner that sent the message at hand; nullptr when it is not of this
  /// directory.
  Entry* sender_entry() {
    const auto& sender = self->current_sender();
    const auto found = sender ? by_id.find(sender->id()) : by_id.end();
    return found == by_id.end() ? nullptr : &found->second->second;
  }

  void offered() {
    Entry* entry = sender_entry();
    if (entry == nullptr) return;
    entry->ending = true;
    self->send(entry->owner, EndAtom::value);
  }

  void stays() {
    Entry* entry = sender_entry();
    if (entry == nullptr) return;
    entry->ending = false;
    for (LeaseRequest& request : std::exchange(entry->held, {})) {
      self->send(entry->owner, std::move(request));
    }
  }

  void ended(const caf::actor_addr& address) {
    const auto found = by_id.find(address.id());
    if (found == by_id.end()) return;
    std::vector<LeaseRequest> held = std::move(found->second->second.held);
    const std::string name = found->second->first;
    by_id.erase(found);
    entries.erase(name);
    --*context.active;
    if (stopping && entries.empty()) return self->quit();
    if (full && entries.size() < context.most_owners - context.most_owners / 10) {
      full = false;
      context.log->info("there is room for owners again", {{"owners", entries.size()}});
    }
    for (LeaseRequest& one : held) request(one);
  }

  void asked(Asked& question) {
    const codec::OwnerQuery& query = question.query;
    const auto found = entries.find(owner_key(query.reg, query.customer));
    if (query.kind == codec::OwnerQuery::Kind::describe) return describe(question);
    codec::OwnerReply reply = blank_reply(query.id);
    if (!context.chaos) {
      reply.error = "killing owners needs `chaos: true` in the file of node " + links().node;
    } else if (found != entries.end()) {
      reply.found = true;
      self->send_exit(found->second.owner, caf::exit_reason::kill);
      context.log->warn("owner killed", {{"customer", query.customer}});
    }
    answer(question.node, std::move(reply));
  }

  /// What the owner holds in memory, and what is only stored.
  void describe(const Asked& question) {
    self->request(links().reader, std::chrono::nanoseconds(kQueryDeadlineNs),
                  LoadCustomer{question.query.reg, question.query.customer})
        .then([this, question](LoadedCustomer& loaded) { loaded_for(question, loaded); },
              [](const caf::error&) { /* the asker's deadline answers */ });
  }

  void loaded_for(const Asked& question, LoadedCustomer& loaded) {
    if (!loaded.records) {
      codec::OwnerReply reply = blank_reply(question.query.id);
      reply.error = loaded.records.error().message;
      return answer(question.node, std::move(reply));
    }
    // A customer may have a bucket for each address that ever came: every lease of this node would
    // wait while they were all looked at here, and no reply has room for more.
    if (loaded.records->size() > codec::kMaxBucketsPerReply) {
      loaded.records->resize(codec::kMaxBucketsPerReply);
    }
    auto stored = stored_views(*loaded.records, context.owners->config, context.owners->epoch, book,
                               instant(*context.owners->clock));
    const auto found = entries.find(owner_key(question.query.reg, question.query.customer));
    if (found == entries.end()) return described(question, std::move(stored), {});
    self->request(found->second.owner, std::chrono::nanoseconds(kQueryDeadlineNs),
                  DescribeAtom::value)
        .then([this, question,
               stored](Views& active) { described(question, stored, std::move(active.buckets)); },
              [this, question, stored](const caf::error&) { described(question, stored, {}); });
  }

  void described(const Asked& question, std::vector<ownership::BucketView> stored,
                 std::vector<ownership::BucketView> active) {
    codec::OwnerReply reply = blank_reply(question.query.id);
    reply.found = true;
    reply.buckets = describe_buckets(merge_views(std::move(stored), std::move(active)));
    answer(question.node, std::move(reply));
  }

  codec::OwnerReply blank_reply(std::uint64_t id) const {
    codec::OwnerReply reply;
    reply.id = id;
    reply.node = links().node;
    reply.epoch = context.owners->epoch;
    return reply;
  }

  void answer(const std::string& node, codec::OwnerReply reply) {
    if (node == links().node) {
      self->send(links().desk, Replied{node, std::move(reply)});
    } else if (links().courier) {
      self->send(links().courier, Replied{node, std::move(reply)});
    }
  }

  void set_book(const Book& changed) {
    book = changed;
    for (auto& [name, entry] : entries) self->send(entry.owner, book);
  }

  /// Ends when the last owner has: until then somebody uses what they share.
  void stop() {
    stopping = true;
    for (auto& [name, entry] : entries) self->send_exit(entry.owner, caf::exit_reason::kill);
    if (entries.empty()) self->quit();
  }

  DirectoryActor::pointer self;
  DirectoryContext context;
  Book book;
  Entries entries;
  std::unordered_map<caf::actor_id, Entries::value_type*> by_id;
  bool full = false;      ///< said so in the log
  bool stopping = false;  ///< owners are ending, none is started
};

DirectoryActor::behavior_type directory_behavior(DirectoryActor::stateful_pointer<Directory> self,
                                                 const DirectoryContext& context,
                                                 const Book& book) {
  Directory* directory = &self->state;
  directory->context = context;
  directory->book = book;
  self->set_down_handler([directory](const caf::down_msg& down) { directory->ended(down.source); });
  return {
      [directory](Requests& requests) {
        for (LeaseRequest& request : requests.all) directory->request(request);
      },
      [directory](Asked& question) { directory->asked(question); },
      [directory](const Book& changed) { directory->set_book(changed); },
      [directory](OfferAtom) { directory->offered(); },
      [directory](StayAtom) { directory->stays(); },
      [directory](StopAtom) { directory->stop(); },
  };
}

}  // namespace

DirectoryActor spawn_directory(caf::actor_system& system, const DirectoryContext& context,
                               const Book& book) {
  return system.spawn(directory_behavior, context, book);
}

}  // namespace weir::actors
