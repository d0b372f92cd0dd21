#include "core/scan/pickle_wrapping.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace reprise {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::string_view bytes;
  std::size_t offset;
  PickleWrapping wrapping;
};
constexpr std::string_view kCompressed =
    "it is compressed, which is not read here; scan what comes out of it";
constexpr std::array<Magic, 7> kMagics{{
    {"\x1f\x8b\x08"sv, 0, {"gzip", kCompressed}},
    {"BZh"sv, 0, {"bzip2", kCompressed}},
    {"\xfd"
     "7zXZ\0"sv,
     0,
     {"xz", kCompressed}},
    {"\x5d\0\0"sv, 0, {"lzma", kCompressed}},
    {"\x28\xb5\x2f\xfd"sv, 0, {"zstd", kCompressed}},
    {"\x04\x22\x4d\x18"sv, 0, {"lz4", kCompressed}},
    {"ustar"sv,
     257,
     {"tar",
      "it is a tar archive, which is not read here; unpack it and scan the "
      "directory"}},
}};

bool has(std::string_view text, const Magic& magic) {
  if (text.size() <= magic.offset || !text.substr(magic.offset).starts_with(magic.bytes)) {
    return false;
  }
  // Text and elements can begin with the short ones by chance.
  if (magic.wrapping.kind == "bzip2") return text.substr(4).starts_with("1AY&SY");
  if (magic.wrapping.kind == "lzma") {
    return text.substr(5).starts_with("\xff\xff\xff\xff\xff\xff\xff\xff");  // of unknown size
  }
  return true;
}

bool is_zlib(std::string_view text) {
  if (text.size() < 2 || text[0] != '\x78') return false;
  const unsigned second = static_cast<unsigned char>(text[1]);
  return (0x7800U + second) % 31 == 0 && (second & 0x20U) == 0;
}

/// Removes the text from the front. Returns false if it is not there.
bool take(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}
void take_any_of(std::string_view& rest, std::string_view characters) {
  rest.remove_prefix(std::min(rest.find_first_not_of(characters), rest.size()));
}

/// True if the header is as numpy writes it for numbers:
/// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
bool is_of_numbers(std::string_view npy) {
  constexpr std::string_view kKinds = "biufcSUVmM";
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t begin = npy.substr(0, 13).find('{');
  if (begin == std::string_view::npos) return false;
  std::string_view rest = npy.substr(begin);
  if (!take(rest, "{'descr': '")) return false;
  take_any_of(rest, "<>|=");
  if (rest.empty() || kKinds.find(rest.front()) == std::string_view::npos) return false;
  rest.remove_prefix(1);
  take_any_of(rest, kDigits);
  if (take(rest, "[")) {  // the unit of a date
    take_any_of(rest, "0123456789abcdefghijklmnopqrstuvwxyzDWMY");
    if (!take(rest, "]")) return false;
  }
  if (!take(rest, "', 'fortran_order': ")) return false;
  if (!take(rest, "False") && !take(rest, "True")) return false;
  if (!take(rest, ", 'shape': (")) return false;
  take_any_of(rest, "0123456789, ");
  if (!take(rest, "), }")) return false;
  take_any_of(rest, " ");
  return rest.starts_with('\n');
}

}  // namespace

PickleWrapping wrapping_of(ByteSpan first, bool named) {
  const std::string_view text = as_text(first);
  if (text.starts_with("\x93NUMPY")) {
    return {kNumpyArray, is_of_numbers(text) ? ""
                                             : "numpy reads an array of objects as a pickle, and "
                                               "this is not known to be one of numbers"};
  }
  for (const Magic& magic : kMagics) {
    if (has(text, magic)) return magic.wrapping;
  }
  if (named && is_zlib(text)) return {"zlib", kCompressed};
  return {};
}

}  // namespace reprise
