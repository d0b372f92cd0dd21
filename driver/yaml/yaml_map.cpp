#include "driver/yaml/yaml_map.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "core/base/codes.hpp"
#include "core/base/print.hpp"
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

/// Refuses two kinds of input that yaml-cpp accepts: aliases that turn a small text into an endless
/// or exponential tree, and bytes that are not text.
void check_tree(const YAML::Node& node, const std::string& file, int depth,
                std::size_t& nodes_left) {
  const auto refuse = [&](const char* why) {
    throw MistakeError({file, node.Mark().line, node.Mark().column, why});
  };
  if (depth > kDepthMax || nodes_left == 0) {
    refuse("too deep or too large once its aliases (*name) are followed; write out their values");
  }
  --nodes_left;
  if (node.IsScalar() && !is_text(node.Scalar())) refuse("a string that is not UTF-8");
  for (const auto& entry : node) {
    if (node.IsMap()) {
      check_tree(entry.first, file, depth + 1, nodes_left);
      check_tree(entry.second, file, depth + 1, nodes_left);
    } else {
      check_tree(entry, file, depth + 1, nodes_left);
    }
  }
}

struct TextLine {
  std::string_view text;
  bool is_blank() const {
    const auto first = text.find_first_not_of(" \t\r");
    return first == std::string_view::npos || text[first] == '#';
  }
  /// True if the line is this marker of documents, "---" or "...", perhaps with content after it.
  bool begins_with(std::string_view marker) const {
    return text.starts_with(marker) &&
           (text.size() == marker.size() || text.find_first_of(" \t\r") == marker.size());
  }
};

std::vector<TextLine> lines_of(std::string_view text) {
  std::vector<TextLine> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.push_back({text.substr(0, end)});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Refuses a text without content, and one with a second document, which yaml-cpp would ignore.
void require_one_document(const std::string& text, const std::string& file) {
  bool begun = false;
  bool ended = false;
  int number = 0;
  for (const auto& line : lines_of(text)) {
    const int at = number++;
    if (line.is_blank()) continue;
    const bool begins = line.begins_with("---");
    const bool ends = line.begins_with("...");
    if (begun && (begins || (ended && !ends))) {
      throw MistakeError(
          {file, at, 0, "a second YAML document begins here; put it into its own file"});
    }
    ended = ended || (begun && ends);
    // A marker alone and a directive (%YAML 1.2) are no content yet.
    const bool alone = begins && TextLine{line.text.substr(3)}.is_blank();
    begun = begun || !(alone || ends || line.text.starts_with('%'));
  }
  if (!begun) throw MistakeError({file, -1, -1, "the file is empty"});
}

struct LineAndColumn {
  int line = 0;
  int column = 0;
};

/// Returns the place of a tab in the indentation of this line or of one beside it, where yaml-cpp
/// has found something wrong.
std::optional<LineAndColumn> tab_near(const std::string& text, int line) {
  const auto lines = lines_of(text);
  for (const int at : {line, line - 1, line + 1}) {
    if (at < 0 || static_cast<std::size_t>(at) >= lines.size()) continue;
    const auto& found = lines[static_cast<std::size_t>(at)];
    const auto tab = found.text.find('\t');
    if (found.is_blank() || tab == std::string_view::npos) continue;
    if (found.text.find_first_not_of(' ') == tab) return LineAndColumn{at, static_cast<int>(tab)};
  }
  return std::nullopt;
}

}  // namespace

YamlMap::YamlMap(const YAML::Node& node, std::string file, std::string what, Bindings* bindings)
    : node_(node), file_(std::move(file)), what_(std::move(what)), bindings_(bindings) {
  if (!node_.IsMap()) refuse(node_, "must be a mapping (key: value)");
  std::set<std::string_view> seen;  // views of strings that the node owns
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar()) refuse(entry.first, "has a key that is not text");
    if (!seen.insert(entry.first.Scalar()).second) {
      note(entry.first, "has the key '" + entry.first.Scalar() + "' twice");
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
  if (names.empty()) refuse(value, "says $" + name + ", and the file has no 'each'");
  const std::string near = closest(name, names);
  refuse(value, "says $" + name + ", which 'each' does not name" +
                    (near.empty() ? "; it names: " + join(names, ", ")
                                  : "; did you mean '$" + near + "'?"));
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
  if (!list.IsSequence()) refuse(list, "needs a list under '" + std::string(key) + "'");
  std::vector<YAML::Node> items;
  attempt_each(list, [&](const YAML::Node& item) { items.push_back(bound(item)); });
  return items;
}

std::vector<std::string> YamlMap::keys() const {
  std::vector<std::string> keys;
  for (const auto& entry : node_) keys.push_back(entry.first.Scalar());
  return keys;
}

std::optional<std::string> YamlMap::text(std::string_view key) {
  know(key);
  if (!has(key)) return std::nullopt;
  return or_nothing([&]() -> std::optional<std::string> {
    const YAML::Node value = node(key);
    if (!value.IsScalar()) refuse(value, "needs one value under '" + std::string(key) + "'");
    if (value.Scalar().size() > kTextMax) refuse(value, "has a string that is too long");
    return value.Scalar();
  });
}

template <class T>
std::optional<T> YamlMap::value(std::string_view key, std::string_view wanted) {
  const auto written = text(key);
  if (!written) return std::nullopt;
  T value = {};
  if (YAML::convert<T>::decode(YAML::Node(*written), value)) return value;
  note(node(key), "needs " + std::string(wanted) + " under '" + std::string(key) + "', not '" +
                      *written + "'");
  return std::nullopt;
}

std::optional<Code> YamlMap::code(std::string_view key) {
  const auto name = text(key);
  if (!name) return std::nullopt;
  const auto code = code_named(*name);
  if (code && is_error(*code)) return code;
  note(node(key), "has the unknown code " + *name);
  return std::nullopt;
}

std::optional<std::int64_t> YamlMap::integer(std::string_view key) {
  return value<std::int64_t>(key, "a whole number");
}

std::optional<std::int64_t> YamlMap::integer_in(std::string_view key, std::int64_t least,
                                                std::int64_t most) {
  const auto value = integer(key);
  if (!value || (*value >= least && *value <= most)) return value;
  note(node(key), "needs " + std::string(key) + " from " + std::to_string(least) + " to " +
                      std::to_string(most) + ", not " + std::to_string(*value));
  return std::nullopt;
}

std::vector<std::int64_t> YamlMap::integers(std::string_view key) {
  std::vector<std::int64_t> numbers;
  for (const auto& written : texts(key)) {
    std::int64_t number = 0;
    if (!YAML::convert<std::int64_t>::decode(YAML::Node(written), number)) {
      note(node(key),
           "needs whole numbers under '" + std::string(key) + "', not '" + written + "'");
      continue;
    }
    numbers.push_back(number);
  }
  return numbers;
}

std::optional<bool> YamlMap::flag(std::string_view key) {
  return value<bool>(key, "true or false");
}

/// Returns whether `word` is one of `words`, and notes a mistake if not.
bool YamlMap::is_known(const YAML::Node& at, std::string_view key, const std::string& word,
                       std::span<const std::string_view> words) const {
  if (std::find(words.begin(), words.end(), word) != words.end()) return true;
  const std::string near = closest(word, words);
  note(at,
       "has the unknown value '" + word + "' under '" + std::string(key) + "'" +
           (near.empty() ? "; available: " + join(words, ", ") : "; did you mean '" + near + "'?"));
  return false;
}

std::optional<std::string> YamlMap::word(std::string_view key,
                                         std::span<const std::string_view> words) {
  auto written = text(key);
  if (written && !is_known(node(key), key, *written, words)) return std::nullopt;
  return written;
}

std::vector<std::string> YamlMap::words(std::string_view key,
                                        std::span<const std::string_view> words) {
  std::vector<std::string> known;
  for (auto& word : texts(key)) {
    if (!is_known(node(key), key, word, words)) continue;
    if (std::find(known.begin(), known.end(), word) != known.end()) {
      note(node(key), "names '" + word + "' twice under '" + std::string(key) + "'");
      continue;
    }
    known.push_back(std::move(word));
  }
  return known;
}

std::optional<double> YamlMap::number(std::string_view key) {
  const auto number = value<double>(key, "a number");
  if (!number || std::isfinite(*number)) return number;
  note(node(key), "needs a finite number under '" + std::string(key) + "'");
  return std::nullopt;
}

std::vector<std::string> YamlMap::texts(std::string_view key) {
  know(key);
  if (!has(key)) return {};
  return or_nothing([&]() -> std::vector<std::string> {
    const YAML::Node value = node(key);
    if (value.IsScalar()) return {value.Scalar()};
    if (!value.IsSequence()) refuse(value, "needs a list under '" + std::string(key) + "'");
    std::vector<std::string> items;
    attempt_each(value, [&](const YAML::Node& written) {
      const YAML::Node item = bound(written);
      if (!item.IsScalar())
        refuse(item, "needs a list of strings under '" + std::string(key) + "'");
      items.push_back(item.Scalar());
    });
    return items;
  });
}

std::string YamlMap::required(std::string_view key) { return needed(key, text(key)); }

/// Throws because the key is missing. The message suggests a present key with a similar name, which
/// is then no longer unknown.
void YamlMap::fail_lacking(std::string_view key) {
  const std::array<std::string_view, 1> wanted = {key};
  for (const auto& entry : node_) {
    const std::string& present = entry.first.Scalar();
    if (std::find(known_.begin(), known_.end(), present) != known_.end()) continue;
    if (closest(present, wanted).empty()) continue;
    know(present);
    refuse(entry.first, "has the unknown key '" + present + "'; did you mean '" + std::string(key) +
                            "', which it lacks?");
  }
  refuse(node_, "lacks '" + std::string(key) + "'");
}

void YamlMap::refuse_unknown() const {
  for (const auto& entry : node_) {
    const std::string& key = entry.first.Scalar();
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string near = closest(key, known_);
    note(entry.first, "has the unknown key '" + key + "'" +
                          (near.empty() ? "; it may have: " + join(known_, ", ")
                                        : "; did you mean '" + near + "'?"));
  }
}

Mistake YamlMap::mistake(const YAML::Node& at, const std::string& message) const {
  return {file_, at.Mark().line, at.Mark().column, what_ + " " + message};
}

void YamlMap::note(const YAML::Node& at, const std::string& message) const {
  if (mistakes() == nullptr) throw MistakeError(mistake(at, message));
  mistakes()->add_form(mistake(at, message));
}

void YamlMap::refuse(const YAML::Node& at, const std::string& message) const {
  note(at, message);
  throw Unread();
}

void YamlMap::fail(const YAML::Node& at, const std::string& message) const {
  throw MistakeError(mistake(at, message));
}

std::string read_yaml_text(const std::string& file) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(file, failed);
  if (failed == std::errc::no_such_file_or_directory) {
    throw Error(Code::kNotFound, "there is no such file or directory", {.file = file});
  }
  const auto unreadable = [&file](const std::string& cause) {
    return Error(Code::kIo, "can't be read: " + cause, {.file = file});
  };
  if (failed) throw unreadable(failed.message());
  if (size > kFileBytesMax) throw Error(Code::kUsage, "more than 64 KiB", {.file = file});
  std::ifstream in(file);
  if (!in) throw unreadable(std::generic_category().message(errno));
  return {std::istreambuf_iterator<char>(in), {}};
}

YAML::Node load_yaml(const std::string& text, const std::string& file) {
  require_one_document(text, file);
  try {
    YAML::Node root = YAML::Load(text);
    std::size_t nodes_left = kNodesMax;
    check_tree(root, file, 0, nodes_left);
    return root;
  } catch (const YAML::Exception& error) {
    if (const auto tab = tab_near(text, error.mark.line)) {
      throw MistakeError({file, tab->line, tab->column,
                          "the line is indented with a tab; YAML requires spaces there"});
    }
    throw MistakeError({file, error.mark.line, error.mark.column, "not valid YAML: " + error.msg});
  }
}

}  // namespace reprise::driver
