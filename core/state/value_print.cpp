#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/base/bytes.hpp"
#include "reprise/value.hpp"

namespace reprise {
namespace {

constexpr std::size_t kItemsPrinted = 16;
constexpr std::size_t kTextPrinted = 120;
/// Upper limit on the length of a value's text in a stream. Deep and wide values are shortened as
/// well.
constexpr std::size_t kLengthPrinted = 4000;

/// Prints a value. Stops descending into the value after `limit` characters, so that printing a
/// large tree costs little.
class Printer {
 public:
  explicit Printer(std::size_t limit) : limit_(limit) {}

  void print(const Value& value) { std::visit(*this, value.variant()); }
  std::string take() { return std::move(out_); }

  void operator()(NoneType) { out_ += "None"; }
  void operator()(bool value) { out_ += value ? "True" : "False"; }
  void operator()(std::int64_t value) { out_ += std::to_string(value); }
  void operator()(const BigInt& value) {
    out_ += "int of " + std::to_string(value.digits.size()) + " bytes";
  }
  void operator()(double value) {
    std::array<char, 40> text{};
    // The shortest digits that give this value again, and an exponent where Python has one.
    const double size = std::fabs(value);
    const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
    const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format).ptr;
    const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
    out_ += digits;
    if (digits.find_first_not_of("-0123456789") == std::string_view::npos) out_ += ".0";
  }
  void operator()(const std::string& value) { quoted(value); }
  void operator()(const Bytes& value) {
    out_ += 'b';
    quoted(as_text(value));
  }
  void operator()(const List& value) { items('[', value, "]"); }
  void operator()(const Tuple& value) {
    items('(', value.items, value.items.size() == 1 ? ",)" : ")");
  }
  void operator()(const Set& value) {
    if (value.frozen) out_ += "frozenset";
    items('{', value.items, "}");
  }
  void operator()(const Dict& value) { entries(value); }
  void operator()(const Name& value) { out_ += value.module + "." + value.name; }
  void operator()(const Object& value) {
    out_ += value.type.name;
    items('(', value.args, ")");
    if (!value.list_items.empty()) items('[', value.list_items, "]");
    if (!value.dict_items.empty()) entries(value.dict_items);
    for (const Value& state : value.state) print(state);
  }
  void operator()(const TensorValue& value) {
    out_ += "tensor(" + std::string(name_of(value.dtype)) + ", " + to_string(value.shape);
    out_ += value.requires_grad ? ", requires_grad)" : ")";
  }

 private:
  void quoted(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out_ += '\'';
    for (const char c : text.substr(0, kTextPrinted)) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '\'' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (byte < 0x20 || byte == 0x7f) {
        out_ += "\\x";
        out_ += kDigits[byte >> 4U];
        out_ += kDigits[byte & 15U];
      } else {
        out_ += c;
      }
    }
    out_ += '\'';
    if (text.size() > kTextPrinted) out_ += "...";
  }

  /// Prints the first few items. If not all are printed, adds `count`, the total number of items.
  template <class One>
  void sequence(std::size_t count, std::string_view word, One one) {
    for (std::size_t i = 0; i < count; ++i) {
      if (i != 0) out_ += ", ";
      if (i == kItemsPrinted || out_.size() > limit_) {
        out_ += "... " + std::to_string(count) + " ";
        out_ += word;
        return;
      }
      one(i);
    }
  }

  void items(char open, const List& list, std::string_view close) {
    out_ += open;
    sequence(list.size(), "items", [&](std::size_t i) { print(list[i]); });
    out_ += close;
  }

  void entries(const Dict& dict) {
    out_ += '{';
    sequence(dict.size(), "entries", [&](std::size_t i) {
      print(dict[i].first);
      out_ += ": ";
      print(dict[i].second);
    });
    out_ += '}';
  }

  std::size_t limit_;
  std::string out_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Value& value) {
  return out << to_string(value, kLengthPrinted);
}

std::string to_string(const Value& value, std::size_t length_max) {
  Printer printer(length_max);
  printer.print(value);
  std::string text = printer.take();
  if (text.size() > length_max) text = text.substr(0, length_max) + "...";
  return text;
}

}  // namespace reprise
