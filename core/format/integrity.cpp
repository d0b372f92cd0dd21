#include "core/format/integrity.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/format/json_document.hpp"

namespace reprise {

namespace {

// Limit on the size of a manifest. Half a million files, one per line, fit within it.
constexpr std::uint64_t kManifestSizeMax = std::uint64_t{64} << 20U;
constexpr std::string_view kAlgorithm = "sha256";

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return std::nullopt;
}

std::optional<Sha256Digest> digest_in(std::string_view text) {
  Sha256Digest digest;
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t n = 0; n < digest.size(); ++n) {
    const auto high = hex_digit(text[2 * n]);
    const auto low = hex_digit(text[2 * n + 1]);
    if (!high || !low) return std::nullopt;
    digest[n] = static_cast<std::byte>(*high * 16 + *low);
  }
  return digest;
}

bool plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

FileDigest read_entry(const std::string& name, const nlohmann::json& value,
                      const ErrorPlace& place) {
  if (!plain_name(name)) {
    throw Error(Code::kPathEscape, "'" + name + "' is not the name of a file beside the manifest",
                place);
  }
  const auto* text = value.get_ptr<const std::string*>();
  const auto digest = text == nullptr ? std::nullopt : digest_in(*text);
  if (!digest) {
    throw Error(Code::kTornFile, "the digest of '" + name + "' is not 64 hexadecimal digits",
                place);
  }
  return {name, *digest};
}

}  // namespace

const FileDigest* IntegrityManifest::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(files, name, {}, &FileDigest::name);
  return found == files.end() || found->name != name ? nullptr : &*found;
}

bool may_be_integrity(ByteSpan bytes) {
  try {
    const nlohmann::json document = parse_json_object(bytes, {}, kManifestSizeMax);
    return document.contains("algorithm") || document.contains("files");
  } catch (const Error&) {
    // A manifest is a JSON object. Damage makes its text invalid, but does not turn it into valid
    // JSON of another kind, such as a list or a number.
    const std::string_view text = as_text(bytes);
    const auto first = text.find_first_not_of(" \t\r\n");
    return first == std::string_view::npos || text[first] == '{' || !nlohmann::json::accept(text);
  }
}

IntegrityManifest read_integrity(ByteSpan bytes, const ErrorPlace& place) {
  const nlohmann::json document = parse_json_object(bytes, place, kManifestSizeMax);
  const auto algorithm = document.find("algorithm");
  const auto files = document.find("files");
  if (algorithm == document.end() || !algorithm->is_string() || files == document.end() ||
      !files->is_object()) {
    throw Error(Code::kTornFile, "an integrity manifest has 'algorithm' and 'files'", place);
  }
  if (*algorithm != kAlgorithm) {
    throw Error(Code::kUnsupported,
                "algorithm '" + algorithm->get<std::string>() + "'; only sha256 is known", place);
  }
  IntegrityManifest manifest;
  for (const auto& [name, value] : files->items()) {  // in the order of names
    manifest.files.push_back(read_entry(name, value, place));
  }
  return manifest;
}

Bytes write_integrity(const IntegrityManifest& manifest) {
  nlohmann::json files = nlohmann::json::object();
  for (const FileDigest& file : manifest.files) files[file.name] = hex(file.digest);
  const nlohmann::json document = {{"algorithm", kAlgorithm}, {"files", std::move(files)}};
  constexpr int kIndent = 2;
  constexpr bool kEscapeNonAscii = true;
  try {
    return to_bytes(document.dump(kIndent, ' ', kEscapeNonAscii));
  } catch (const nlohmann::json::type_error&) {
    throw Error(Code::kUnsupported,
                "a manifest holds names in UTF-8 alone; rename the file whose name is not");
  }
}

}  // namespace reprise
