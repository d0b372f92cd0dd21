#include "tests/core/format/items.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace reprise::test {

namespace {
constexpr std::string_view kEndSignature = "PK\5\6";
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kWideEndBytes = 56 + 20;  // including the wide locator
}  // namespace

Bytes test_file(std::string_view path) {
  const std::string full = std::string(REPRISE_TEST_DATA) + "/" + std::string(path);
  std::ifstream file(full, std::ios::binary);
  if (!file) throw Error(Code::kNotFound, "no such test file", {.file = full});
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return to_bytes(text);
}

std::vector<ByteSpan> items_in(ByteSpan payload) {
  std::vector<ByteSpan> items;
  const std::string_view text = as_text(payload);
  // If an archive is nested in an item, the nested archive has an end record, too. That record is
  // not mistaken for the item's end, because its offset is not counted from the item's beginning.
  std::size_t begin = 0;
  for (std::size_t end = 0; begin < text.size(); ++end) {
    end = text.find(kEndSignature, end);
    if (end == std::string_view::npos) throw Error(Code::kTornFile, "no end of an item");
    const std::uint64_t size = load_le<std::uint32_t>(payload.subspan(end + 12));
    const std::uint64_t offset = load_le<std::uint32_t>(payload.subspan(end + 16));
    if (offset + size + kWideEndBytes != end - begin) continue;
    items.push_back(payload.subspan(begin, end + kEndBytes - begin));
    begin = end + kEndBytes;
  }
  return items;
}

std::vector<std::string> payload_files() {
  std::vector<std::string> files;
  const std::filesystem::path root = REPRISE_TEST_DATA;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    // torch wrote those of one fixture as safetensors; another holds hostile pickles.
    const std::string folder = entry.path().parent_path().filename().string();
    const bool archives = folder != "within" && !folder.starts_with("scan_");
    if (archives && entry.path().extension() == ".distcp") {
      files.push_back(std::filesystem::relative(entry.path(), root).string());
    }
  }
  std::ranges::sort(files);
  return files;
}

std::size_t SpoiledItem::directory() const {
  return load_le<std::uint32_t>(ByteSpan(bytes).subspan(end_record() + 16));
}

std::size_t SpoiledItem::entry(std::size_t n) const {
  std::size_t at = directory();
  for (; n > 0; --n) {
    const ByteSpan header = ByteSpan(bytes).subspan(at);
    at += 46U + load_le<std::uint16_t>(header.subspan(28)) +
          load_le<std::uint16_t>(header.subspan(30));
  }
  return at;
}

std::size_t SpoiledItem::local(std::size_t n) const {
  return load_le<std::uint32_t>(ByteSpan(bytes).subspan(entry(n) + 42));
}

std::size_t SpoiledItem::place_of(std::string_view text) const { return as_text(bytes).find(text); }

void SpoiledItem::put_text(std::size_t at, std::string_view text) {
  std::ranges::copy(as_bytes(text), bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

void SpoiledItem::set_directory(std::uint64_t offset, std::uint64_t size) {
  put(wide_end_record() + 40, size);
  put(wide_end_record() + 48, offset);
  put(end_record() + 12, static_cast<std::uint32_t>(std::min<std::uint64_t>(size, 0xffffffff)));
  put(end_record() + 16, static_cast<std::uint32_t>(std::min<std::uint64_t>(offset, 0xffffffff)));
}

void SpoiledItem::set_count(std::uint64_t count) {
  put(wide_end_record() + 24, count);
  put(wide_end_record() + 32, count);
  put(end_record() + 8, static_cast<std::uint16_t>(std::min<std::uint64_t>(count, 0xffff)));
  put(end_record() + 10, static_cast<std::uint16_t>(std::min<std::uint64_t>(count, 0xffff)));
}

void CountingSource::read_at(std::uint64_t offset, MutableByteSpan out) {
  ++reads;
  bytes_read += out.size();
  std::ranges::copy(bytes_.subspan(offset, out.size()), out.begin());
}

}  // namespace reprise::test
