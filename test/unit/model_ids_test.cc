// Goal: two buckets never share a key, whatever their names are made of; keys, slots and varints
// are the same for ever; and no bytes whatever crash or fool the decoder (FIELD kind 3).
// Method: golden bytes in test/vectors; random keys over an alphabet that looks like the encoding
// itself; every truncation and bit flip; canonical form: what decodes encodes to the same bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/random.h"
#include "src/model/ids.h"

namespace weir {
namespace {

using testing::HasSubstr;

// --- Vectors ---

std::string to_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    text.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  return text;
}

/// The `name value` lines of a file in test/vectors; `#` starts a comment.
std::map<std::string, std::string> read_vectors(const std::string& file) {
  std::ifstream in(std::string(WEIR_VECTORS_DIR) + "/" + file);
  std::map<std::string, std::string> vectors;
  for (std::string line; std::getline(in, line);) {
    const auto space = line.find(' ');
    if (line.empty() || line[0] == '#' || space == std::string::npos) continue;
    vectors[line.substr(0, space)] = line.substr(space + 1);
  }
  return vectors;
}

// --- Varints ---

std::string varint(std::uint64_t value) {
  std::string out;
  append_varint(out, value);
  return out;
}

TEST(Varint, KnownBytesAndBack) {
  const std::pair<std::uint64_t, const char*> table[] = {
      {0, "00"},
      {1, "01"},
      {127, "7f"},
      {128, "8001"},
      {300, "ac02"},
      {16383, "ff7f"},
      {16384, "808001"},
      {UINT32_MAX, "ffffffff0f"},
      {UINT64_MAX, "ffffffffffffffffff01"},
      {std::uint64_t{1} << 63, "80808080808080808001"},
  };
  for (const auto& [value, hex] : table) {
    EXPECT_EQ(to_hex(varint(value)), hex);
    const std::string bytes = varint(value) + "rest";
    std::string_view left = bytes;
    EXPECT_EQ(take_varint(left), value);
    EXPECT_EQ(left, "rest");
  }
}

TEST(Varint, EveryLengthComesBackAndEveryTruncationIsRefused) {
  for (unsigned shift = 0; shift < 64; ++shift) {
    for (const std::int64_t nudge : {-1, 0, 1}) {
      const std::uint64_t value = (std::uint64_t{1} << shift) + static_cast<std::uint64_t>(nudge);
      const std::string bytes = varint(value);
      std::string_view left = bytes;
      ASSERT_EQ(take_varint(left), value);
      ASSERT_TRUE(left.empty());
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        std::string_view cut = std::string_view(bytes).substr(0, size);
        ASSERT_FALSE(take_varint(cut)) << value << " cut to " << size;
      }
    }
  }
}

TEST(Varint, OverlongAndOverflowingFormsAreRefused) {
  using namespace std::string_view_literals;
  for (std::string_view bad :
       {"\x80\x00"sv, "\x81\x00"sv, "\xFF\x80\x00"sv, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"sv,
        "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"sv, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F"sv,
        "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"sv,
        "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x81\x00"sv}) {
    const std::string hex = to_hex(bad);
    EXPECT_FALSE(take_varint(bad)) << hex;
  }
}

// --- Bucket keys ---

std::map<std::string, BucketKey> golden_keys() {
  const std::string all_bytes = [] {
    std::string text;
    for (int byte = 0; byte < 256; ++byte) text.push_back(static_cast<char>(byte));
    return text;
  }();
  return {
      {"global", {"acme", Scope::global, "", "api", {}}},
      {"region", {"acme", Scope::region, "eu", "api", {}}},
      {"node_whole", {"", Scope::node, "", "node-guard", {}}},
      {"absent", {"acme", Scope::global, "", "login", {{"ip", std::nullopt}}}},
      {"empty", {"acme", Scope::global, "", "login", {{"ip", ""}}}},
      {"two", {"acme", Scope::global, "", "login", {{"ip", "::1"}, {"route", "POST /login"}}}},
      {"tuple_a_b__c", {"a_b", Scope::global, "", "c", {}}},
      {"tuple_a__b_c", {"a", Scope::global, "", "b_c", {}}},
      {"unicode", {"Stra\u00DFe \U0001F600", Scope::global, "", "api", {{"\u20AC", "\u00E9"}}}},
      {"long_customer", {std::string(300, 'x'), Scope::node, "", "l", {}}},
      {"bytes", {all_bytes, Scope::region, "", "l", {{"a", all_bytes}}}},
  };
}

TEST(BucketKeyGolden, TheEncodingIsForEver) {
  const auto vectors = read_vectors("bucket_keys.txt");
  const auto keys = golden_keys();
  EXPECT_EQ(vectors.size(), keys.size());
  for (const auto& [name, key] : keys) {
    const auto vector = vectors.find(name);
    ASSERT_NE(vector, vectors.end()) << name << " is not in test/vectors/bucket_keys.txt";
    EXPECT_EQ(to_hex(encode(key)), vector->second) << name;
    const auto decoded = decode_bucket_key(encode(key));
    ASSERT_TRUE(decoded) << name << ": " << decoded.error().message;
    EXPECT_EQ(*decoded, key) << name;
  }
}

/// Text that looks like lengths, scopes and presence bytes, so that parts could run together.
std::string nasty_text(Random& random, std::size_t least) {
  constexpr std::string_view kAlphabet("\0\1\2\3\4a_b/:\x80\xFF", 12);
  std::string text;
  const std::size_t length = least + random.below(random.chance(50) ? 200 : 4);
  while (text.size() < length) text.push_back(kAlphabet[random.below(kAlphabet.size())]);
  return text;
}

BucketKey nasty_key(Random& random) {
  BucketKey key;
  key.customer = nasty_text(random, 0);
  key.scope = static_cast<Scope>(random.between(1, 3));
  if (key.scope == Scope::region) key.region = nasty_text(random, 0);
  key.limit = nasty_text(random, 1);
  std::set<std::string> names;
  for (std::uint64_t i = random.below(4); i > 0; --i) names.insert(nasty_text(random, 1));
  for (const auto& name : names) {
    std::optional<std::string> value;
    if (random.chance(700)) value = nasty_text(random, 0);
    key.attributes.emplace_back(name, value);
  }
  return key;
}

TEST(BucketKeyProperty, TwoKeysShareAnEncodingOnlyIfTheyAreEqual) {
  Random random(1);
  std::map<std::string, BucketKey> seen;
  for (int i = 0; i < 50'000; ++i) {
    const BucketKey key = nasty_key(random);
    const std::string bytes = encode(key);
    const auto decoded = decode_bucket_key(bytes);
    ASSERT_TRUE(decoded) << to_hex(bytes) << ": " << decoded.error().message;
    ASSERT_EQ(*decoded, key) << to_hex(bytes);
    const auto [entry, is_new] = seen.emplace(bytes, key);
    ASSERT_TRUE(is_new || entry->second == key) << to_hex(bytes);
  }
  EXPECT_GT(seen.size(), 25'000U);
}

/// Whatever decodes must be the very bytes that encode() writes: else one bucket has two keys.
void expect_refused_or_canonical(std::string_view bytes) {
  const auto decoded = decode_bucket_key(bytes);
  if (!decoded) {
    ASSERT_EQ(decoded.error().code, ErrorCode::corrupt);
    ASSERT_THAT(decoded.error().message, HasSubstr("not a bucket key"));
    return;
  }
  ASSERT_EQ(to_hex(encode(*decoded)), to_hex(bytes));
}

TEST(BucketKeyDecode, EveryTruncationIsRefusedOrLosesWholeAttributes) {
  for (const auto& [name, key] : golden_keys()) {
    const std::string bytes = encode(key);
    std::set<std::string> whole;
    for (BucketKey shorter = key; !shorter.attributes.empty();) {
      shorter.attributes.pop_back();
      whole.insert(encode(shorter));
    }
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const std::string cut = bytes.substr(0, size);
      ASSERT_EQ(decode_bucket_key(cut).has_value(), whole.count(cut) == 1) << name << " " << size;
    }
  }
}

TEST(BucketKeyDecode, BitFlipsAndTrailingBytesAreRefusedOrAnotherKeysOwn) {
  for (const auto& [name, key] : golden_keys()) {
    const std::string bytes = encode(key);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      expect_refused_or_canonical(flipped);
      const auto decoded = decode_bucket_key(flipped);
      ASSERT_FALSE(decoded && *decoded == key) << name << " bit " << bit;
    }
    for (int byte = 0; byte < 256; ++byte) {
      // One more byte can never be a whole attribute.
      ASSERT_FALSE(decode_bucket_key(bytes + static_cast<char>(byte))) << name << " + " << byte;
    }
  }
}

TEST(BucketKeyDecode, RandomBytesNeverCrashAndStayCanonical) {
  Random random(2);
  int decoded = 0;
  for (int i = 0; i < 50'000; ++i) {
    const std::string bytes = nasty_text(random, random.below(24));
    expect_refused_or_canonical(bytes);
    if (HasFatalFailure()) return;
    if (decode_bucket_key(bytes)) ++decoded;
  }
  EXPECT_GT(decoded, 20) << "the generator has become too blunt to test anything";
}

TEST(BucketKeyDecode, NamesWhatIsWrong) {
  using namespace std::string_view_literals;
  const std::pair<std::string_view, const char*> table[] = {
      {""sv, "the customer is cut off"},
      {"\x05"
       "acme"sv,
       "the customer is cut off"},
      {"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"
       "acme"sv,
       "the customer is cut off"},
      {"\x80\x00\x03\x01l"sv, "the customer is cut off"},
      {"\x01x"sv, "unknown scope"},
      {"\x01x\x00\x01l"sv, "unknown scope"},
      {"\x01x\x04\x01l"sv, "unknown scope"},
      {"\x01x\x02\x05"
       "eu"sv,
       "the region is cut off"},
      {"\x01x\x03"sv, "the limit's name"},
      {"\x01x\x03\x00"sv, "the limit's name"},
      {"\x01x\x03\x01l\x00\x00"sv, "an attribute's name"},
      {"\x01x\x03\x01l\x01"
       "a"sv,
       "presence"},
      {"\x01x\x03\x01l\x01"
       "a\x02"sv,
       "presence"},
      {"\x01x\x03\x01l\x01"
       "a\x01\x02v"sv,
       "an attribute's value is cut off"},
      {"\x01x\x03\x01l\x01"
       "b\x00\x01"
       "a\x00"sv,
       "not in order"},
      {"\x01x\x03\x01l\x01"
       "a\x00\x01"
       "a\x00"sv,
       "not in order"},
  };
  for (const auto& [bytes, message] : table) {
    const auto decoded = decode_bucket_key(bytes);
    ASSERT_FALSE(decoded) << to_hex(bytes);
    EXPECT_THAT(decoded.error().message, HasSubstr(message)) << to_hex(bytes);
    EXPECT_EQ(decoded.error().field, "bucket");
  }
}

TEST(BucketKeyDistinct, JoinedTextWouldCollide) {
  const auto key = [](const char* customer, const char* limit) {
    return encode({customer, Scope::global, "", limit, {}});
  };
  EXPECT_NE(key("a_b", "c"), key("a", "b_c"));
  EXPECT_NE(key("ab", "c"), key("a", "bc"));
  EXPECT_NE(key("", "abc"), key("abc", ""));
}

TEST(BucketKeyDistinct, AbsentEmptyScopeRegionAndCaseAllCount) {
  const auto with = [](std::optional<std::string> ip) {
    return encode({"acme", Scope::global, "", "login", {{"ip", std::move(ip)}}});
  };
  const std::vector<std::string> keys = {
      with(std::nullopt),
      with(""),
      with(std::string(1, '\0')),
      with("A"),
      with("a"),
      encode({"acme", Scope::global, "", "login", {}}),
      encode({"acme", Scope::node, "", "login", {}}),
      encode({"acme", Scope::region, "", "login", {}}),
      encode({"acme", Scope::region, "eu", "login", {}}),
      encode({"acme", Scope::region, "us", "login", {}}),
      encode({"Acme", Scope::global, "", "login", {}}),
      encode({"acme", Scope::global, "", "login", {{"ip", "a"}, {"route", std::nullopt}}}),
      // A composed and a decomposed letter are two customers: nothing is folded.
      encode({"\u00E9", Scope::global, "", "login", {}}),
      encode({"e\u0301", Scope::global, "", "login", {}}),
  };
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), keys.size());
}

TEST(BucketKeyWriter, WritesPartByPartWhatEncodeWrites) {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const BucketKey key = nasty_key(random);
    std::string out = "kept";
    BucketKeyWriter writer(out);
    // A region is written for scope region only, whatever the caller hands in.
    writer.begin(key.customer, key.scope, key.scope == Scope::region ? key.region : "ignored",
                 key.limit);
    for (const auto& [name, value] : key.attributes)
      writer.attribute(name, value ? &*value : nullptr);
    ASSERT_EQ(out, "kept" + encode(key));
  }
}

TEST(CustomerPrefix, IsSharedByAllBucketsOfACustomerAndByNoOther) {
  Random random(4);
  for (int i = 0; i < 20'000; ++i) {
    const BucketKey ours = nasty_key(random);
    const BucketKey theirs = nasty_key(random);
    const std::string prefix = customer_prefix(ours.customer);
    ASSERT_EQ(encode(ours).compare(0, prefix.size(), prefix), 0);
    const bool shared = encode(theirs).compare(0, prefix.size(), prefix) == 0;
    ASSERT_EQ(shared, ours.customer == theirs.customer);
  }
}

// --- Slots, registers, epochs ---

TEST(Slots, AreForEver) {
  EXPECT_EQ(slot_of("acme"), 3084);
  EXPECT_EQ(slot_of("mallory"), 167);
  EXPECT_EQ(slot_of("203.0.113.9"), 331);
  EXPECT_EQ(slot_of("Stra\u00DFe"), 3891);
  EXPECT_EQ(slot_of(""), 2457);
  EXPECT_EQ(slot_of(std::string(1024, 'x')), 3811);
}

TEST(Slots, CustomersSpreadEvenly) {
  constexpr int kPerSlot = 50;
  std::vector<int> seen(kSlotCount);
  for (std::uint32_t i = 0; i < kSlotCount * kPerSlot; ++i) {
    ++seen[slot_of("customer-" + std::to_string(i))];
  }
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), kPerSlot / 3);
  EXPECT_LT(*std::max_element(seen.begin(), seen.end()), kPerSlot * 2);
}

TEST(Registers, RegionLimitsBelongToTheAskingRegionGlobalOnesToNone) {
  const Slot slot = slot_of("acme");
  const RegisterId regional = register_of(Scope::region, "eu", "acme");
  EXPECT_EQ(regional, (RegisterId{RegisterId::Kind::region, "eu", slot}));
  EXPECT_EQ(register_of(Scope::global, "eu", "acme"),
            (RegisterId{RegisterId::Kind::global, "", slot}));
  EXPECT_EQ(register_of(Scope::global, "eu", "acme"), register_of(Scope::global, "us", "acme"));
  EXPECT_NE(regional, register_of(Scope::region, "us", "acme"));
}

TEST(Registers, PrintTheirKind) {
  EXPECT_EQ(to_string(RegisterId{RegisterId::Kind::global, "", 7}), "global/7");
  EXPECT_EQ(to_string(RegisterId{RegisterId::Kind::region, "eu", 7}), "region:eu/7");
  EXPECT_EQ(to_string(RegisterId{RegisterId::Kind::pin, "eu", 4095}), "pin:eu/4095");
}

TEST(RegistersDeathTest, NodeLimitsHaveNoRegister) {
  EXPECT_DEATH(register_of(Scope::node, "eu", "acme"), "assertion failed");
}

TEST(Epochs, AreOrderedByCounterThenNodeThenIncarnation) {
  const std::vector<Epoch> ordered = {{0, "", 0},   {1, "a", 9}, {1, "b", 1}, {1, "b", 2},
                                      {1, "ba", 0}, {2, "a", 0}, {10, "a", 0}};
  for (std::size_t i = 0; i + 1 < ordered.size(); ++i) EXPECT_LT(ordered[i], ordered[i + 1]);
  EXPECT_EQ(to_string(Epoch{3, "eu-1", 42}), "3.eu-1.42");
}

TEST(Versions, AnyHigherEpochBeatsAnySequence) {
  EXPECT_LT((Version{{1, "a", 1}, UINT64_MAX}), (Version{{1, "a", 2}, 0}));
  EXPECT_LT((Version{{1, "a", 1}, 1}), (Version{{1, "a", 1}, 2}));
}

}  // namespace
}  // namespace weir
