#include "src/model/register.h"

#include <charconv>

namespace weir {
namespace {

constexpr std::uint64_t kFormat = 1;

void append_text(std::string& out, std::string_view text) {
  append_varint(out, text.size());
  out.append(text);
}

std::optional<std::string> take_text(std::string_view& bytes) {
  const auto length = take_varint(bytes);
  if (!length || *length > bytes.size()) return std::nullopt;
  std::string text(bytes.substr(0, *length));
  bytes.remove_prefix(*length);
  return text;
}

void append_marks(std::string& out, const std::vector<StoreMark>& marks) {
  append_varint(out, marks.size());
  for (const StoreMark& mark : marks) {
    append_text(out, mark.node);
    append_varint(out, mark.number);
  }
}

bool take_marks(std::string_view& bytes, std::vector<StoreMark>& marks) {
  const auto count = take_varint(bytes);
  if (!count || *count > kMaxStoreMarks) return false;
  for (std::uint64_t i = 0; i < *count; ++i) {
    auto node = take_text(bytes);
    const auto number = take_varint(bytes);
    if (!node || !number || *number > UINT32_MAX) return false;
    marks.push_back({std::move(*node), static_cast<std::uint32_t>(*number)});
  }
  return true;
}

void append_version(std::string& out, const TopologyVersion& version) {
  append_varint(out, version.version);
  append_text(out, version.document);
  append_marks(out, version.listed);
  append_varint(out, version.generation);
  append_varint(out, version.generation_began);
}

bool take_version(std::string_view& bytes, TopologyVersion& version) {
  const auto number = take_varint(bytes);
  auto document = take_text(bytes);
  if (!number || *number > kMaxTopologyVersion || !document) return false;
  version.version = *number;
  version.document = std::move(*document);
  if (!take_marks(bytes, version.listed)) return false;
  const auto generation = take_varint(bytes);
  const auto began = take_varint(bytes);
  if (!generation || !began) return false;
  version.generation = *generation;
  version.generation_began = *began;
  return true;
}

}  // namespace

std::string encode(const RegisterState& state) {
  std::string out;
  append_varint(out, kFormat);
  append_varint(out, state.promise.counter);
  append_text(out, state.promise.node);
  append_varint(out, state.promise.incarnation);
  append_varint(out, state.votes ? 1 : 0);
  append_varint(out, state.generation);
  append_marks(out, state.first_start);
  append_marks(out, state.known);
  append_varint(out, state.stage);
  return out;
}

Result<RegisterState> decode_register_state(std::string_view bytes) {
  const auto bad = [] {
    return failure(ErrorCode::corrupt, "register", "not the stored state of a register");
  };
  RegisterState state;
  const auto format = take_varint(bytes);
  const auto counter = take_varint(bytes);
  if (!format || *format != kFormat || !counter) return bad();
  auto node = take_text(bytes);
  const auto incarnation = take_varint(bytes);
  const auto votes = take_varint(bytes);
  const auto generation = take_varint(bytes);
  if (!node || !incarnation || !votes || *votes > 1 || !generation) return bad();
  state.promise = {*counter, std::move(*node), *incarnation};
  state.votes = *votes == 1;
  state.generation = *generation;
  if (!take_marks(bytes, state.first_start) || !take_marks(bytes, state.known)) return bad();
  const auto stage = take_varint(bytes);
  if (!stage || !bytes.empty()) return bad();
  state.stage = *stage;
  return state;
}

std::string encode(const TopologyState& state) {
  std::string out;
  append_varint(out, kFormat);
  append_version(out, state.finished);
  append_varint(out, state.next ? 1 : 0);
  if (state.next) append_version(out, *state.next);
  return out;
}

Result<TopologyState> decode_topology_state(std::string_view bytes) {
  const auto bad = [] {
    return failure(ErrorCode::corrupt, "topology", "not the stored state of a topology");
  };
  TopologyState state;
  const auto format = take_varint(bytes);
  if (!format || *format != kFormat || !take_version(bytes, state.finished)) return bad();
  const auto next = take_varint(bytes);
  if (!next || *next > 1) return bad();
  if (*next == 1 && !take_version(bytes, state.next.emplace())) return bad();
  if (!bytes.empty()) return bad();
  if (state.next && state.next->version <= state.finished.version) return bad();
  return state;
}

std::size_t record_bytes(const std::string& bucket, const LedgerRecord& ledger) {
  // Every number at its longest, and the frames around them.
  constexpr std::size_t kRecordBytes = 192;
  constexpr std::size_t kLesseeBytes = 72;
  std::size_t bytes = kRecordBytes + bucket.size() + ledger.document.size();
  for (const LesseeRecord& lessee : ledger.lessees) {
    bytes += kLesseeBytes + lessee.lessee.node.size();
  }
  return bytes;
}

std::string meta_key(const RegisterId& reg) {
  std::string key(kRegisterMetaPrefix);
  key += std::to_string(static_cast<int>(reg.kind));
  key += "/" + std::to_string(reg.slot) + "/" + reg.region;
  return key;
}

std::optional<RegisterId> register_of_meta_key(std::string_view key) {
  if (!key.starts_with(kRegisterMetaPrefix)) return std::nullopt;
  key.remove_prefix(kRegisterMetaPrefix.size());
  if (key.size() < 4 || key[0] < '1' || key[0] > '4' || key[1] != '/') return std::nullopt;
  RegisterId reg;
  reg.kind = static_cast<RegisterId::Kind>(key[0] - '0');
  key.remove_prefix(2);
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), reg.slot);
  if (error != std::errc{} || reg.slot >= kSlotCount || end == key.data() + key.size()) {
    return std::nullopt;
  }
  if (*end != '/') return std::nullopt;
  reg.region = std::string(end + 1, key.data() + key.size());
  return reg;
}

}  // namespace weir
