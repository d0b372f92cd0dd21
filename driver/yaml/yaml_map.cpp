#include "driver/yaml/yaml_map.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/codes.hpp"
#include "core/base/print.hpp"
#include "driver/yaml/text_file.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr std::size_t kTextMax = 1000;
constexpr std::uintmax_t kFileBytesMax = 64 * 1024;
constexpr std::size_t kNodesMax = 64 * 1024;  // more nodes than any file of allowed size has
constexpr int kDepthMax = 32;

/// Returns the length in bytes of the first UTF-8 character. Returns 0 if the bytes are malformed
/// or encode no character. yaml-cpp accepts malformed bytes but would write different ones, so
/// callers refuse them.
std::size_t letter_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t size = lead < 0xC2   ? 0
                           : lead < 0xE0 ? 2
                           : lead < 0xF0 ? 3
                           : lead < 0xF5 ? 4
                                         : 0;
  if (size == 0 || text.size() < size) return 0;
  std::uint32_t code = lead & (0x7FU >> size);
  for (const char next : text.substr(1, size - 1)) {
    if ((static_cast<unsigned char>(next) & 0xC0U) != 0x80) return 0;
    code = code << 6U | (static_cast<unsigned char>(next) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  const bool none = (code & 0xFFFEU) == 0xFFFE || (code >= 0xFDD0 && code < 0xFDF0);
  return code < kLeast.at(size) || code > 0x10FFFF || surrogate || none ? 0 : size;
}

bool is_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = letter_bytes(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

/// Returns "file:line:column"; the file alone if the node has no place in it.
std::string place_of(const std::string& file, const YAML::Mark& mark) {
  if (mark.line < 0) return file;
  return file + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

/// Refuses two kinds of input that yaml-cpp accepts: aliases that turn a small text into an endless
/// or exponential tree, and bytes that are not text.
void check_tree(const YAML::Node& node, const std::string& file, int depth,
                std::size_t& nodes_left) {
  const auto refuse = [&](const char* why) {
    throw Error(Code::kUsage, why, {.file = place_of(file, node.Mark())});
  };
  if (depth > kDepthMax || nodes_left == 0) {
    refuse("too deep or too large once its aliases (*name) are followed; write out their values");
  }
  --nodes_left;
  if (node.IsScalar() && !is_text(node.Scalar())) refuse("a text that is not UTF-8");
  for (const auto& entry : node) {
    if (node.IsMap()) {
      check_tree(entry.first, file, depth + 1, nodes_left);
      check_tree(entry.second, file, depth + 1, nodes_left);
    } else {
      check_tree(entry, file, depth + 1, nodes_left);
    }
  }
}

}  // namespace

YamlMap::YamlMap(const YAML::Node& node, std::string file, std::string what, Bindings* bindings)
    : node_(node), file_(std::move(file)), what_(std::move(what)), bindings_(bindings) {
  if (!node_.IsMap()) fail(node_, "must be a mapping (key: value)");
  std::set<std::string_view> seen;  // views of strings that the node owns
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar()) fail(entry.first, "has a key that is not text");
    if (!seen.insert(entry.first.Scalar()).second) {
      fail(entry.first, "has the key '" + entry.first.Scalar() + "' twice");
    }
  }
}

bool YamlMap::has(std::string_view key) const {
  for (const auto& entry : node_) {
    if (entry.first.Scalar() == key) return true;
  }
  return false;
}

YAML::Node YamlMap::bound(const YAML::Node& value) const {
  if (bindings_ == nullptr || !value.IsScalar() || !value.Scalar().starts_with('$')) return value;
  const std::string name = value.Scalar().substr(1);
  std::vector<std::string> names;
  for (const auto& [known, node] : bindings_->values) {
    if (known == name) {
      bindings_->used.insert(name);
      return node;
    }
    if (!known.ends_with(".next")) names.push_back(known);
  }
  if (names.empty()) fail(value, "says $" + name + ", and the file has no 'each'");
  const std::string near = closest(name, names);
  fail(value,
       "says $" + name + ", which 'each' does not name" +
           (near.empty() ? "; it names: " + join(names, ", ") : "; did you mean '$" + near + "'?"));
}

void YamlMap::know(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
}

YAML::Node YamlMap::node(std::string_view key) {
  know(key);
  for (const auto& entry : node_) {
    if (entry.first.Scalar() == key) return bound(entry.second);
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

YAML::Node YamlMap::required_node(std::string_view key) {
  if (!has(key)) fail_lacking(key);
  return node(key);
}

YamlMap YamlMap::map(std::string_view key) {
  return {required_node(key), file_, std::string(key), bindings_};
}

std::vector<YAML::Node> YamlMap::items(std::string_view key) {
  const YAML::Node list = required_node(key);
  if (!list.IsSequence()) fail(list, "wants a list under '" + std::string(key) + "'");
  std::vector<YAML::Node> items;
  for (const auto& item : list) items.push_back(bound(item));
  return items;
}

std::vector<std::string> YamlMap::keys() const {
  std::vector<std::string> keys;
  for (const auto& entry : node_) keys.push_back(entry.first.Scalar());
  return keys;
}

std::optional<std::string> YamlMap::text(std::string_view key) {
  if (!has(key)) {
    know(key);
    return std::nullopt;
  }
  const YAML::Node value = node(key);
  if (!value.IsScalar()) fail(value, "wants one value under '" + std::string(key) + "'");
  if (value.Scalar().size() > kTextMax) fail(value, "has a text that is too long");
  return value.Scalar();
}

std::optional<Code> YamlMap::code(std::string_view key) {
  const auto name = text(key);
  if (!name) return std::nullopt;
  const auto code = code_named(*name);
  if (!code || !is_error(*code)) fail(node(key), "knows no code " + *name);
  return code;
}

std::optional<std::int64_t> YamlMap::integer(std::string_view key) {
  const auto written = text(key);
  if (!written) return std::nullopt;
  std::int64_t value = 0;
  if (!YAML::convert<std::int64_t>::decode(YAML::Node(*written), value)) {
    fail(node(key),
         "wants a whole number under '" + std::string(key) + "', not '" + *written + "'");
  }
  return value;
}

std::optional<std::int64_t> YamlMap::integer_in(std::string_view key, std::int64_t least,
                                                std::int64_t most) {
  const auto value = integer(key);
  if (!value || (*value >= least && *value <= most)) return value;
  fail(node(key), "wants " + std::string(key) + " from " + std::to_string(least) + " to " +
                      std::to_string(most) + ", not " + std::to_string(*value));
}

std::vector<std::int64_t> YamlMap::integers(std::string_view key) {
  std::vector<std::int64_t> numbers;
  for (const auto& written : texts(key)) {
    std::int64_t number = 0;
    if (!YAML::convert<std::int64_t>::decode(YAML::Node(written), number)) {
      fail(node(key),
           "wants whole numbers under '" + std::string(key) + "', not '" + written + "'");
    }
    numbers.push_back(number);
  }
  return numbers;
}

std::optional<bool> YamlMap::flag(std::string_view key) {
  const auto written = text(key);
  if (!written) return std::nullopt;
  bool value = false;
  if (!YAML::convert<bool>::decode(YAML::Node(*written), value)) {
    fail(node(key), "wants true or false under '" + std::string(key) + "', not '" + *written + "'");
  }
  return value;
}

void YamlMap::require_word(const YAML::Node& at, std::string_view key, const std::string& word,
                           std::span<const std::string_view> words) const {
  if (std::find(words.begin(), words.end(), word) != words.end()) return;
  const std::string near = closest(word, words);
  fail(at,
       "knows no '" + word + "' under '" + std::string(key) + "'" +
           (near.empty() ? "; there are: " + join(words, ", ") : "; did you mean '" + near + "'?"));
}

std::optional<std::string> YamlMap::word(std::string_view key,
                                         std::span<const std::string_view> words) {
  auto written = text(key);
  if (written) require_word(node(key), key, *written, words);
  return written;
}

std::vector<std::string> YamlMap::words(std::string_view key,
                                        std::span<const std::string_view> words) {
  auto written = texts(key);
  for (auto word = written.begin(); word != written.end(); ++word) {
    require_word(node(key), key, *word, words);
    if (std::find(written.begin(), word, *word) != word) {
      fail(node(key), "names '" + *word + "' twice under '" + std::string(key) + "'");
    }
  }
  return written;
}

std::optional<double> YamlMap::number(std::string_view key) {
  const auto written = text(key);
  if (!written) return std::nullopt;
  double value = 0;
  if (!YAML::convert<double>::decode(YAML::Node(*written), value)) {
    fail(node(key), "wants a number under '" + std::string(key) + "', not '" + *written + "'");
  }
  return value;
}

std::vector<std::string> YamlMap::texts(std::string_view key) {
  if (!has(key)) {
    know(key);
    return {};
  }
  const YAML::Node value = node(key);
  if (value.IsScalar()) return {value.Scalar()};
  if (!value.IsSequence()) fail(value, "wants a list under '" + std::string(key) + "'");
  std::vector<std::string> items;
  for (const auto& written : value) {
    const YAML::Node item = bound(written);
    if (!item.IsScalar()) fail(item, "wants a list of texts under '" + std::string(key) + "'");
    items.push_back(item.Scalar());
  }
  return items;
}

std::string YamlMap::required(std::string_view key) {
  auto value = text(key);
  if (!value) fail_lacking(key);
  return *value;
}

/// Throws because the key is missing. The message suggests a present key with a similar name.
void YamlMap::fail_lacking(std::string_view key) const {
  const std::array<std::string_view, 1> wanted = {key};
  for (const auto& entry : node_) {
    const std::string& present = entry.first.Scalar();
    if (std::find(known_.begin(), known_.end(), present) != known_.end()) continue;
    if (closest(present, wanted).empty()) continue;
    fail(entry.first, "has the unknown key '" + present + "'; did you mean '" + std::string(key) +
                          "', which it lacks?");
  }
  fail(node_, "lacks '" + std::string(key) + "'");
}

void YamlMap::refuse_unknown() const {
  for (const auto& entry : node_) {
    const std::string& key = entry.first.Scalar();
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string near = closest(key, known_);
    fail(entry.first, "has the unknown key '" + key + "'" +
                          (near.empty() ? "; it may have: " + join(known_, ", ")
                                        : "; did you mean '" + near + "'?"));
  }
}

void YamlMap::fail(const YAML::Node& at, const std::string& message) const {
  throw Error(Code::kUsage, what_ + " " + message, {.file = place_of(file_, at.Mark())});
}

std::string read_yaml_text(const std::string& file) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(file, failed);
  if (failed) throw Error(Code::kNotFound, failed.message(), {.file = file});
  if (size > kFileBytesMax) throw Error(Code::kUsage, "more than 64 KiB", {.file = file});
  return text_of(file);
}

YAML::Node load_yaml(const std::string& text, const std::string& file) {
  try {
    YAML::Node root = YAML::Load(text);
    std::size_t nodes_left = kNodesMax;
    check_tree(root, file, 0, nodes_left);
    return root;
  } catch (const YAML::Exception& error) {
    throw Error(Code::kUsage, "no YAML: " + error.msg, {.file = place_of(file, error.mark)});
  }
}

}  // namespace reprise::driver
