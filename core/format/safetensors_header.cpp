#include "core/format/safetensors_header.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/print.hpp"
#include "core/format/metadata_tables.hpp"
#include "core/format/tensor_item.hpp"
#include "core/geometry/folded_shape.hpp"

namespace reprise {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kSkippedDepthMax = 16;
constexpr std::uint64_t kOffsetMax = std::uint64_t{1} << 62U;

/// Elements of a type with fewer than 8 bits share bytes: `packed` of them are one element here.
struct DTypeRow {
  std::string_view name;
  DType dtype;
  std::int64_t packed = 1;
};
constexpr DTypeRow kDTypes[] = {
    {"BOOL", DType::kBool},
    {"U8", DType::kUInt8},
    {"I8", DType::kInt8},
    {"F4", DType::kFloat4E2M1FNx2, 2},
    {"F8_E5M2", DType::kFloat8E5M2},
    {"F8_E4M3", DType::kFloat8E4M3FN},
    {"F8_E8M0", DType::kFloat8E8M0FNU},
    {"F8_E4M3FNUZ", DType::kFloat8E4M3FNUZ},
    {"F8_E5M2FNUZ", DType::kFloat8E5M2FNUZ},
    {"I16", DType::kInt16},
    {"U16", DType::kUInt16},
    {"F16", DType::kFloat16},
    {"BF16", DType::kBFloat16},
    {"I32", DType::kInt32},
    {"U32", DType::kUInt32},
    {"F32", DType::kFloat32},
    {"C64", DType::kComplex64},
    {"F64", DType::kFloat64},
    {"I64", DType::kInt64},
    {"U64", DType::kUInt64},
};

/// Reads characters and counts them, so that errors can say where they are.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t& count) : at_(at), count_(&count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  std::size_t* count_;
};

/// Takes the header's tokens one by one. Each handler throws an Error for a token that does not
/// belong there.
class Handler final : public nlohmann::json_sax<Json> {
 public:
  Handler(const std::size_t& read, const ErrorPlace& place) : read_(read), place_(place) {}

  SafetensorsHeader take() { return std::move(header_); }

  /// Writers may give null in place of no metadata.
  bool null() override {
    return (within_ == Within::kHeader && key_ == kSafetensorsMetadataKey) || scalar();
  }
  bool boolean(bool /*value*/) override { return scalar(); }
  bool number_integer(number_integer_t /*value*/) override { return scalar(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
    return scalar();
  }
  bool binary(binary_t& /*value*/) override { return scalar(); }

  bool number_unsigned(number_unsigned_t value) override {
    if (within_ != Within::kShape && within_ != Within::kOffsets) return scalar();
    auto& numbers = within_ == Within::kShape ? *shape_ : *offsets_;
    if (numbers.size() == kTorchNdimMax) {
      fail(Code::kUnsupported, "more than " + std::to_string(kTorchNdimMax) + " dimensions");
    }
    numbers.push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (within_ == Within::kMetadata) {
      header_.metadata[text_key_] = value;
    } else if (within_ == Within::kTensor && field_ == "dtype") {
      dtype_ = value;
    } else {
      scalar();
    }
    return true;
  }

  bool key(string_t& name) override {
    switch (within_) {
      case Within::kHeader:
        begin_key(name);
        break;
      case Within::kMetadata:
        if (header_.metadata.contains(name)) fail(Code::kTornFile, twice(name));
        text_key_ = name;
        break;
      case Within::kTensor:
        field_ = name;
        if ((field_ == "dtype" && dtype_) || (field_ == "shape" && shape_) ||
            (field_ == "data_offsets" && offsets_)) {
          fail(Code::kTornFile, twice(name));
        }
        break;
      default:
        break;
    }
    return true;
  }

  bool start_object(std::size_t /*elements*/) override {
    if (within_ == Within::kNothing) {
      within_ = Within::kHeader;
    } else if (within_ == Within::kHeader) {
      within_ = key_ == kSafetensorsMetadataKey ? Within::kMetadata : Within::kTensor;
    } else {
      skip_into();
    }
    return true;
  }
  bool end_object() override { return close(); }

  bool start_array(std::size_t /*elements*/) override {
    if (within_ == Within::kTensor && field_ == "shape") {
      shape_.emplace();
      within_ = Within::kShape;
    } else if (within_ == Within::kTensor && field_ == "data_offsets") {
      offsets_.emplace();
      within_ = Within::kOffsets;
    } else {
      skip_into();
    }
    return true;
  }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    ErrorPlace at = place_;
    at.offset = place_.offset.value_or(0) + (position > 0 ? position - 1 : 0);
    throw Error(Code::kTornFile, "the header is not JSON in UTF-8", at);
  }

 private:
  enum class Within {
    kNothing,
    kHeader,
    kMetadata,
    kTensor,
    kShape,
    kOffsets,
    kSkipped,  ///< a field of a tensor that no reader knows
  };

  [[noreturn]] void fail(Code code, std::string message) const {
    ErrorPlace at = place_;
    const bool of_tensor = within_ != Within::kNothing && key_ != kSafetensorsMetadataKey;
    if (of_tensor) at.key = key_;
    at.offset = place_.offset.value_or(0) + (of_tensor ? key_end_ : read_);
    throw Error(code, std::move(message), at);
  }

  static std::string twice(const std::string& name) {
    return "the JSON key '" + name.substr(0, 200) + "' occurs twice";
  }

  /// A value that has no meaning: legal only in a field that no reader knows.
  bool scalar() const {
    const bool known = field_ == "dtype" || field_ == "shape" || field_ == "data_offsets";
    if (within_ != Within::kSkipped && (within_ != Within::kTensor || known)) {
      fail(Code::kTornFile, within_ == Within::kMetadata
                                ? "the metadata has a value that is no text"
                                : "the header does not describe a tensor");
    }
    return true;
  }

  void skip_into() {
    if (within_ != Within::kSkipped) scalar();
    within_ = Within::kSkipped;
    if (++skipped_depth_ > kSkippedDepthMax) {
      fail(Code::kLimit, "JSON nested deeper than " + std::to_string(kSkippedDepthMax));
    }
  }

  bool close() {
    switch (within_) {
      case Within::kSkipped:
        if (--skipped_depth_ == 0) within_ = Within::kTensor;
        break;
      case Within::kShape:
      case Within::kOffsets:
        within_ = Within::kTensor;
        break;
      case Within::kTensor:
        add_entry();
        within_ = Within::kHeader;
        break;
      case Within::kMetadata:
        within_ = Within::kHeader;
        break;
      default:
        within_ = Within::kNothing;
    }
    return true;
  }

  void begin_key(const std::string& name) {
    key_ = name.substr(0, kKeyBytesMax);
    key_end_ = read_;
    if (name.size() > kKeyBytesMax) {
      fail(Code::kUnsupported, "a key of " + std::to_string(name.size()) + " bytes; at most " +
                                   std::to_string(kKeyBytesMax) + " are supported");
    }
    if (!keys_.insert(name).second) fail(Code::kTornFile, twice(name));
    dtype_.reset();
    shape_.reset();
    offsets_.reset();
    field_.clear();
  }

  void set_shape(const DTypeRow& row, SafetensorsEntry& entry) const {
    std::vector<std::int64_t> extents;
    for (const std::uint64_t extent : *shape_) {
      if (extent > kOffsetMax) too_large_shape();
      extents.push_back(static_cast<std::int64_t>(extent));
    }
    if (row.packed != 1) {
      if (extents.empty() || extents.back() % row.packed != 0) {
        fail(Code::kUnsupported, "the last dimension of a tensor of type " + std::string(row.name) +
                                     " is no multiple of " + std::to_string(row.packed));
      }
      extents.back() /= row.packed;
    }
    for (std::size_t d = 0; d < extents.size() && d < kMaxNdim; ++d) {
      entry.shape.push_back(extents[d]);
    }
    if (extents.size() > kMaxNdim) {
      entry.folded.assign(extents.begin() + (kMaxNdim - 1), extents.end());
      const auto product = checked_volume(entry.folded);
      if (product) entry.shape[kMaxNdim - 1] = *product;
      if (!can_stand_for(entry.shape, entry.folded)) too_large_shape();
    }
    if (too_large(size_of(entry.dtype), entry.shape)) too_large_shape();
  }

  [[noreturn]] void too_large_shape() const {
    fail(Code::kLimit, "a tensor of more than 2^62 bytes");
  }

  void add_entry() {
    if (!dtype_ || !shape_ || !offsets_ || offsets_->size() != 2) {
      fail(Code::kTornFile, "a tensor needs dtype, shape and two data_offsets");
    }
    const auto* const row = std::ranges::find(kDTypes, *dtype_, &DTypeRow::name);
    if (row == std::end(kDTypes)) {
      fail(Code::kUnsupported, "the type '" + dtype_->substr(0, 200) + "' is not supported");
    }
    SafetensorsEntry entry{.key = key_, .dtype = row->dtype};
    set_shape(*row, entry);
    const std::uint64_t begin = offsets_->front();
    const std::uint64_t end = offsets_->back();
    if (end > kOffsetMax) fail(Code::kLimit, "data_offsets of more than 2^62 bytes");
    if (end < begin) {
      fail(Code::kTornFile, "data_offsets end at " + with_commas(end) + ", before they begin, at " +
                                with_commas(begin));
    }
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(volume(entry.shape)) * size_of(entry.dtype);
    if (end - begin != bytes) {
      fail(Code::kExtentMismatch, "data_offsets give it " + counted(end - begin, "byte") +
                                      ", but its dtype and shape need " + with_commas(bytes));
    }
    entry.range = {begin, bytes};
    header_.entries.push_back(std::move(entry));
  }

  const std::size_t& read_;  ///< characters read so far
  const ErrorPlace& place_;
  SafetensorsHeader header_;
  Within within_ = Within::kNothing;
  std::set<std::string> keys_;
  std::string key_;          ///< the tensor's
  std::size_t key_end_ = 0;  ///< where it ends
  std::string text_key_;     ///< of the metadata
  std::string field_;
  std::size_t skipped_depth_ = 0;
  std::optional<std::string> dtype_;
  std::optional<std::vector<std::uint64_t>> shape_;
  std::optional<std::vector<std::uint64_t>> offsets_;
};

/// The findings of one kind in a file: the first, and how many there are.
class OfKind {
 public:
  OfKind(Code code, const ErrorPlace& place) : code_(code), place_(place) {}

  void add(const std::string& message, const std::string& key, std::uint64_t offset) {
    if (count_++ == 0) {
      first_ = {
          Severity::kError, code_, message, key, place_.file, place_.offset.value_or(0) + offset};
    }
  }
  void take_into(Findings& findings) {
    if (count_ == 0) return;
    if (count_ > 1) first_.message += "; and " + with_commas(count_ - 1) + " more in this file";
    findings.push_back(std::move(first_));
  }

 private:
  Code code_;
  const ErrorPlace& place_;
  Finding first_;
  std::size_t count_ = 0;
};

}  // namespace

std::uint64_t safetensors_header_bytes(ByteSpan first, std::uint64_t size,
                                       const ErrorPlace& place) {
  if (size < kSafetensorsLengthBytes || first.size() < kSafetensorsLengthBytes) {
    throw Error(Code::kTornFile, "too short for a safetensors file: " + counted(size, "byte"),
                place);
  }
  const auto bytes = load_le<std::uint64_t>(first);
  if (bytes > kSafetensorsHeaderMax) {
    throw Error(Code::kLimit,
                "a header of " + with_commas(bytes) + " bytes; readers of safetensors take " +
                    with_commas(kSafetensorsHeaderMax),
                place);
  }
  if (bytes > size - kSafetensorsLengthBytes) {
    throw Error(Code::kTornFile,
                "the header has " + with_commas(bytes) + " bytes, but the file ends after " +
                    with_commas(size - kSafetensorsLengthBytes) + " of them",
                place);
  }
  return bytes;
}

SafetensorsHeader read_safetensors_header(ByteSpan json, const ErrorPlace& place) {
  const std::string_view text = as_text(json);
  if (!text.starts_with('{')) {
    throw Error(Code::kTornFile, "the header is not a JSON object", place);
  }
  // The parser takes a NUL for the end.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    ErrorPlace at = place;
    at.offset = place.offset.value_or(0) + nul;
    throw Error(Code::kTornFile, "the header is not JSON: it has a NUL", at);
  }
  std::size_t read = 0;
  Handler handler(read, place);
  Json::sax_parse(CountingIterator(text.data(), read),
                  CountingIterator(text.data() + text.size(), read), &handler);
  SafetensorsHeader header = handler.take();
  header.data_begin = kSafetensorsLengthBytes + json.size();
  for (SafetensorsEntry& entry : header.entries) entry.range.offset += header.data_begin;
  std::ranges::stable_sort(header.entries, [](const auto& a, const auto& b) {
    return std::pair(a.range.offset, a.range.size) < std::pair(b.range.offset, b.range.size);
  });
  return header;
}

std::optional<std::string_view> safetensors_name_of(DType dtype) {
  const auto row = std::ranges::find(kDTypes, dtype, &DTypeRow::dtype);
  if (row == std::end(kDTypes)) return std::nullopt;
  return row->name;
}

std::string write_safetensors_header(SafetensorsHeader& header) {
  // Written member by member: keys are unique and stay in this order.
  std::string text = "{";
  const auto add = [&text](const std::string& key, const nlohmann::ordered_json& value) {
    if (text.size() > 1) text += ',';
    text += nlohmann::json(key).dump() + ":" + value.dump();
  };
  if (!header.metadata.empty()) add(std::string(kSafetensorsMetadataKey), header.metadata);
  std::uint64_t end = 0;
  for (auto& entry : header.entries) {
    const auto row = std::ranges::find(kDTypes, entry.dtype, &DTypeRow::dtype);
    if (row == std::end(kDTypes)) {
      throw Error(Code::kUnsupported,
                  "safetensors has no type " + std::string(name_of(entry.dtype)),
                  {.key = entry.key});
    }
    entry.range = {end, static_cast<std::uint64_t>(volume(entry.shape)) * size_of(entry.dtype)};
    end += entry.range.size;
    std::vector<std::int64_t> shape(entry.shape.begin(), entry.shape.end());
    if (row->packed > 1 && !shape.empty()) shape.back() *= row->packed;
    add(entry.key,
        {{"dtype", row->name}, {"shape", shape}, {"data_offsets", {entry.range.offset, end}}});
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');  // elements begin at a multiple of 8 bytes
  if (text.size() > kSafetensorsHeaderMax) {
    throw Error(Code::kLimit, "the header would have " + std::to_string(text.size()) +
                                  " bytes, more than readers take; write smaller files");
  }
  header.data_begin = kSafetensorsLengthBytes + text.size();
  for (auto& entry : header.entries) entry.range.offset += header.data_begin;
  std::string bytes;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    bytes += static_cast<char>((text.size() >> shift) & 0xffU);
  }
  return bytes + text;
}

Findings check_safetensors_layout(const SafetensorsHeader& header, std::uint64_t size,
                                  const ErrorPlace& place) {
  OfKind torn(Code::kTornFile, place);
  OfKind overlaps(Code::kChunkOverlap, place);
  OfKind gaps(Code::kCoverageGap, place);
  std::uint64_t reached = header.data_begin;
  const SafetensorsEntry* last = nullptr;  // the one that reaches furthest
  for (const SafetensorsEntry& entry : header.entries) {
    const auto [begin, bytes] = entry.range;
    if (!entry.range.fits(size)) {
      torn.add("the tensor ends at " + with_commas(begin + bytes) + ", but the file at " +
                   with_commas(size),
               entry.key, begin);
    }
    if (begin < reached) {
      overlaps.add(last == nullptr ? "it begins before the elements do"
                                   : "its bytes overlap those of " + last->key + ", which end at " +
                                         with_commas(reached),
                   entry.key, begin);
    } else if (begin > reached) {
      gaps.add(counted(begin - reached, "byte") + " before this tensor belong to none", entry.key,
               reached);
    }
    if (begin + bytes >= reached) {
      reached = begin + bytes;
      last = &entry;
    }
  }
  if (reached < size) {
    gaps.add(counted(size - reached, "byte") + " after the last tensor belong to none",
             last == nullptr ? "" : last->key, reached);
  }
  Findings findings;
  torn.take_into(findings);
  overlaps.take_into(findings);
  gaps.take_into(findings);
  return findings;
}

}  // namespace reprise
