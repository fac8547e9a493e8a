#include "test/unit/lease_cluster.h"

#include <algorithm>

#include "src/model/ids.h"

namespace weir::test {

IdealBucket::IdealBucket(const LimitNumbers& numbers)
    : numbers_(numbers), level_(static_cast<Wide>(numbers.capacity) * numbers.rate_period_ns) {}

void IdealBucket::admit(std::int64_t tokens, Nanos now_ns) {
  const Wide full = static_cast<Wide>(numbers_.capacity) * numbers_.rate_period_ns;
  if (started_) level_ += static_cast<Wide>(now_ns - as_of_ns_) * numbers_.rate_count;
  level_ = std::min(level_, full);
  started_ = true;
  as_of_ns_ = now_ns;
  level_ -= static_cast<Wide>(tokens) * numbers_.rate_period_ns;
  admitted_ += tokens;
  const Wide below = -level_ - static_cast<Wide>(allowance_) * numbers_.rate_period_ns;
  if (below <= 0) return;
  violated_ = true;
  worst_ = std::max(worst_, static_cast<std::int64_t>((below + numbers_.rate_period_ns - 1) /
                                                      numbers_.rate_period_ns));
}

std::optional<LimitNumbers> PolicyBook::numbers(const BucketKey& bucket) const {
  const auto found = policy_->find(bucket.limit, bucket.customer);
  if (!found || found->kind != policy::MatchedLimit::Kind::numbers) return std::nullopt;
  return found->numbers;
}

LimitDefinition leased_limit(std::string name, std::int64_t capacity, std::int64_t count,
                             Nanos period_ns) {
  LimitDefinition limit;
  limit.name = std::move(name);
  limit.numbers = {capacity, count, period_ns};
  return limit;
}

std::shared_ptr<const policy::Policy> policy_of(std::vector<LimitDefinition> limits,
                                                std::uint64_t version) {
  PolicyDefinition definition;
  definition.version = version;
  definition.limits = std::move(limits);
  return std::make_shared<policy::Policy>(std::move(definition));
}

Check check_of(std::string customer, std::int64_t cost) {
  Check check;
  check.customer = std::move(customer);
  check.cost = cost;
  return check;
}

Cluster::Cluster(ClusterOptions options) : options_(std::move(options)), random_(options_.seed) {
  policy_ = policy_of(options_.limits);
  for (const LimitDefinition& limit : options_.limits) ideal_.emplace(limit.name, limit.numbers);
  edges_.resize(options_.edges);
  allowed_at.resize(options_.edges);
  for (std::size_t i = 0; i < options_.edges; ++i) {
    edge::LimiterConfig config;
    config.node = std::to_string(i);
    config.region = "eu";
    config.terms = options_.terms;
    config.wait_ns = options_.wait_ns;
    config.expected_edges = options_.expected_edges;
    config.max_buckets = options_.max_buckets;
    edges_[i].limiter = std::make_unique<edge::Limiter>(
        config, clock_, random_.next(), [this, i] { edges_[i].next_ns = clock_.now_ns; });
    edges_[i].limiter->set_policy(policy_);
  }
  start_owner();
}

void Cluster::at(Nanos instant_ns, std::function<void()> what) {
  events_.emplace(instant_ns, std::move(what));
}

Nanos Cluster::next_instant() const {
  Nanos next_ns = owner_ ? owner_->next_deadline() : kForever;
  for (const Edge& edge : edges_) next_ns = std::min(next_ns, edge.next_ns);
  if (!events_.empty()) next_ns = std::min(next_ns, events_.begin()->first);
  return next_ns;
}

/// Everything that is due at this instant, once.
void Cluster::turn() {
  while (!events_.empty() && events_.begin()->first <= clock_.now_ns) {
    const auto what = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    what();
  }
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    if (edges_[i].next_ns <= clock_.now_ns) collect(i);
  }
  if (owner_ && owner_->next_deadline() <= clock_.now_ns) step_owner(ownership::Owner::Tick{});
}

/// Who wants to be called at this instant.
std::string Cluster::spinner() const {
  if (owner_ && owner_->next_deadline() <= clock_.now_ns) return "the owner";
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    if (edges_[i].next_ns <= clock_.now_ns) return "edge " + std::to_string(i);
  }
  return "the network";
}

void Cluster::run_until(Nanos instant_ns) {
  int still = 0;
  while (true) {
    const Nanos next_ns = next_instant();
    if (next_ns > instant_ns) break;
    if (next_ns > clock_.now_ns) {
      clock_.now_ns = next_ns;
      still = 0;
    }
    // Whoever asks to be called again and again at one instant would burn a processor.
    ASSERT_LT(++still, 20'000) << spinner() << " spins at " << clock_.now_ns;
    turn();
  }
  clock_.now_ns = std::max(clock_.now_ns, instant_ns);
}

void Cluster::send(std::size_t edge, std::function<void()> deliver) {
  if (!connected(edge)) return;
  const int copies = random_.chance(options_.copied) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    if (random_.chance(options_.lost)) continue;
    Nanos span_ns = options_.one_way_ns;
    if (random_.chance(options_.delayed)) span_ns += random_.between(0, options_.delay_ns);
    after(span_ns, deliver);
  }
}

void Cluster::collect(std::size_t edge) {
  std::vector<LeaseRequest> out;
  edges_[edge].next_ns = kForever;
  const Nanos next_ns = edges_[edge].limiter->collect(out);
  edges_[edge].next_ns = std::min(edges_[edge].next_ns, next_ns);
  for (const LeaseRequest& request : out) {
    ++requests;
    if (on_request) on_request(request);
    send(edge, [this, request] {
      if (!owner_ && !down_) start_owner();
      if (owner_) step_owner(ownership::Owner::Requested{request});
    });
  }
}

void Cluster::start_owner() {
  ++owner_life_;
  down_ = false;
  const Epoch epoch{owner_life_, "owner", 1};
  owner_ = std::make_unique<ownership::Owner>(ownership::OwnerConfig{options_.terms}, epoch,
                                              std::make_shared<PolicyBook>(policy_), now_ns());
}

void Cluster::step_owner(ownership::Owner::Event event) {
  ownership::Owner::Effects effects;
  owner_->step(std::move(event), now_ns(), effects);
  for (const LeaseAnswer& answer : effects.answers) {
    if (on_answer) on_answer(answer);
    const auto edge = static_cast<std::size_t>(std::stoul(answer.lessee.node));
    send(edge, [this, edge, answer] { edges_[edge].limiter->on_answer(answer); });
  }
  const std::uint64_t life = owner_life_;
  for (const std::string& bucket : effects.loads) {
    after(options_.commit_ns, [this, life, bucket] {
      if (life != owner_life_ || !owner_) return;
      std::optional<AgedRecord> record;
      if (const auto found = stored_.find(bucket); found != stored_.end()) {
        const auto& [ledger, stored_ns] = found->second;
        record = AgedRecord{{bucket, {}, ledger}, now_ns() - stored_ns};
      }
      step_owner(ownership::Owner::Loaded{bucket, record});
    });
  }
  if (effects.commit) {
    ASSERT_FALSE(committing_) << "two commits at once (B7)";
    ++commits;
    committing_ = std::move(effects.commit);
    after(options_.commit_ns, [this, life] {
      if (life != owner_life_ || !owner_) return;
      for (auto& [bucket, ledger] : committing_->records) stored_[bucket] = {ledger, now_ns()};
      const std::uint64_t id = committing_->id;
      committing_.reset();
      step_owner(ownership::Owner::Committed{id});
    });
  }
  EXPECT_FALSE(effects.passive && effects.commit) << "let go with something unstored (B11)";
  if (effects.passive) owner_.reset();
}

void Cluster::kill_owner(Nanos down_ns) {
  if (committing_ && random_.chance(500)) {
    for (auto& [bucket, ledger] : committing_->records) stored_[bucket] = {ledger, now_ns()};
  }
  committing_.reset();
  owner_.reset();
  down_ = true;
  after(down_ns, [this] { down_ = false; });
}

void Cluster::check(std::size_t edge, const Check& check, const Answered& answered) {
  ++checks;
  const auto note = [this, edge, check, answered](const Decision& decision) {
    ++by_source[{decision.allowed, decision.source}];
    if (decision.allowed) {
      ++allowed;
      ++allowed_at[edge];
      const bool by_policy =
          decision.source == Source::allow || decision.source == Source::static_share;
      if (check.cost > 0 && !by_policy) {
        for (auto& [name, bucket] : ideal_) bucket.admit(check.cost, now_ns());
      }
    }
    if (decision.allowed && check.cost < 0) {
      for (auto& [name, bucket] : ideal_) bucket.allow_more(-check.cost);
    }
    if (answered) answered(decision);
  };
  Decision decision;
  const auto decided = edges_[edge].limiter->decide(check, decision);
  ASSERT_TRUE(decided.has_value());
  if (*decided) {
    note(decision);
  } else {
    edges_[edge].limiter->decide_later(check, note);
  }
}

Decision Cluster::ask(std::size_t edge, const Check& check) {
  std::optional<Decision> result;
  this->check(edge, check, [&](const Decision& decision) { result = decision; });
  const Nanos end_ns = now_ns() + 10 * kSecond;
  while (!result && next_instant() <= end_ns) run_until(std::max(now_ns(), next_instant()));
  EXPECT_TRUE(result.has_value()) << "no answer";
  return result.value_or(Decision{});
}

void Cluster::load(std::size_t edge, const Check& check, Nanos every_ns, Nanos end_ns) {
  if (now_ns() >= end_ns) return;
  this->check(edge, check);
  after(every_ns, [this, edge, check, every_ns, end_ns] { load(edge, check, every_ns, end_ns); });
}

void Cluster::set_policy(std::vector<LimitDefinition> limits, std::uint64_t version) {
  policy_ = policy_of(std::move(limits), version);
  for (Edge& edge : edges_) edge.limiter->set_policy(policy_);
  if (owner_) step_owner(ownership::Owner::PolicyChanged{std::make_shared<PolicyBook>(policy_)});
}

lease::Ledger Cluster::stored_ledger(const std::string& bucket) const {
  const auto& [record, stored_ns] = stored_.at(bucket);
  return lease::Ledger(bucket, record, now_ns() - stored_ns, options_.terms, now_ns());
}

void Cluster::expect_conservation() {
  if (!owner_) return;
  for (const ownership::BucketView& view : owner_->view(now_ns())) {
    EXPECT_GE(view.level, 0);
    EXPECT_LE(view.level, std::max<std::int64_t>(0, view.capacity - view.outstanding));
    std::int64_t sum = 0;
    for (const auto& lessee : view.lessees) sum += lessee.outstanding;
    EXPECT_EQ(sum, view.outstanding);
  }
}

}  // namespace weir::test
