#include "core/format/pickle/pickle_calls.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/format/pickle/pickle_dates.hpp"

namespace reprise::pickle {
namespace {

constexpr std::size_t kDigitsMax = 4300;  // Python's own limit
/// Longer tuples are not looked through: many calls may share one.
constexpr std::size_t kItemsSeen = 64;

bool is_iterable(Kind kind) {
  switch (kind) {
    case Kind::kText:
    case Kind::kBytes:
    case Kind::kByteArray:
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kDict:
    case Kind::kSet:
    case Kind::kFrozenSet:
      return true;
    default:
      return false;
  }
}

Fit of_count(Nodes items, std::size_t least, std::size_t most) {
  return when(items.size() >= least && items.size() <= most);
}

Fit of_nothing_or_iterable(const Graph& graph, Nodes items) {
  if (items.empty()) return Fit::kFits;
  if (items.size() > 1) return Fit::kRefused;
  return unless_made(graph, items[0], is_iterable(graph.kind(items[0])));
}

/// Arguments of set and frozenset. Items of a list are seen when the set is read.
Fit of_set(const Graph& graph, Nodes items) {
  const Fit fit = of_nothing_or_iterable(graph, items);
  if (fit != Fit::kFits || items.empty() || graph.kind(items[0]) != Kind::kTuple) return fit;
  return when(graph.hashable(items[0]));
}

/// Arguments of the functions that rebuild tensors: how many there are. The reader of tensors
/// judges the rest, but only of tensors that are part of the value.
Fit of_tensor(std::string_view function, Nodes items) {
  if (function == "_rebuild_tensor") return of_count(items, 4, 4);
  if (function == "_rebuild_tensor_v2") return of_count(items, 6, 7);
  if (function == "_rebuild_tensor_v3") return of_count(items, 7, 8);
  if (function == "_rebuild_parameter") return of_count(items, 3, 3);
  if (function == "_rebuild_parameter_with_state") return of_count(items, 4, 4);
  if (function == "_rebuild_from_type_v2") return of_count(items, 4, 4);
  return Fit::kFits;
}

/// Arguments of dict and Counter: items that are pairs are not looked into.
Fit of_mapping(const Graph& graph, Nodes items) {
  if (items.empty()) return Fit::kFits;
  if (items.size() > 1) return Fit::kRefused;
  if (graph.kind(items[0]) == Kind::kDict) return Fit::kFits;
  return is_iterable(graph.kind(items[0])) ? Fit::kUnread : unless_made(graph, items[0], false);
}

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Judges text that Python turns into a number. Digits of other scripts count for Python.
Fit of_int_text(std::string_view written) {
  if (written.size() > kDigitsMax || !is_ascii(written)) return Fit::kUnread;
  std::string_view text = stripped(written);
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front()) || !is_digit(text.back())) return Fit::kRefused;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (!is_digit(text[i]) && (text[i] != '_' || text[i + 1] == '_')) return Fit::kRefused;
  }
  return Fit::kFits;
}
Fit of_float_text(std::string_view written) {
  if (written.size() > kDigitsMax || !is_ascii(written)) return Fit::kUnread;
  if (written.find('_') != std::string_view::npos) return Fit::kUnread;
  std::string_view text = stripped(written);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  if (text.starts_with("-") && written.find('+') != std::string_view::npos &&
      stripped(written).front() == '+') {
    return Fit::kRefused;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return Fit::kFits;
  return when(!text.empty() && error == std::errc{} && end == text.data() + text.size() &&
              text.find('(') == std::string_view::npos);
}

Fit of_int(const Graph& graph, Nodes items) {
  if (items.empty()) return Fit::kFits;
  if (items.size() > 1) return items.size() > 2 ? Fit::kRefused : Fit::kUnread;
  if (is_text(graph, items[0])) return of_int_text(graph.text(items[0]));
  if (graph.kind(items[0]) == Kind::kFloat) return when(std::isfinite(graph.floating(items[0])));
  if (graph.kind(items[0]) == Kind::kBytes) return Fit::kUnread;
  return unless_made(graph, items[0], is_int(graph, items[0]));
}
Fit of_float(const Graph& graph, Nodes items) {
  if (items.empty()) return Fit::kFits;
  if (items.size() > 1) return Fit::kRefused;
  if (is_text(graph, items[0])) return of_float_text(graph.text(items[0]));
  const Kind kind = graph.kind(items[0]);
  if (kind == Kind::kBytes || kind == Kind::kBigInteger) return Fit::kUnread;
  return unless_made(graph, items[0], is_number(graph, items[0]));
}
Fit of_complex(const Graph& graph, Nodes items) {
  if (items.size() > 2) return Fit::kRefused;
  if (items.size() == 1 && is_text(graph, items[0])) return Fit::kUnread;
  for (const NodeId item : items) {
    if (graph.kind(item) == Kind::kBigInteger) return Fit::kUnread;
    if (!is_number(graph, item)) return unless_made(graph, item, false);
  }
  return Fit::kFits;
}
Fit of_str(const Graph& graph, Nodes items) {
  if (items.size() <= 1) return Fit::kFits;
  if (items.size() > 3 || !is_text(graph, items[1])) return Fit::kRefused;
  return Fit::kUnread;
}

Fit of_range(const Graph& graph, Nodes items) {
  if (items.empty() || items.size() > 3) return Fit::kRefused;
  for (const NodeId item : items) {
    if (!is_int(graph, item)) return unless_made(graph, item, false);
  }
  const bool no_step =
      items.size() == 3 && is_small_int(graph, items[2]) && integer_of(graph, items[2]) == 0;
  return when(!no_step);
}

Fit of_encode(const Graph& graph, Nodes items) {
  if (items.empty() || items.size() > 3) return Fit::kRefused;
  for (const NodeId item : items) {
    if (!is_text(graph, item)) return Fit::kUnread;
  }
  const bool latin1 =
      items.size() == 2 && (graph.text(items[1]) == "latin1" || graph.text(items[1]) == "latin-1");
  return latin1 ? Fit::kFits : Fit::kUnread;  // who decodes the text sees if latin1 has it
}
/// bytes and bytearray.
Fit of_bytes(const Graph& graph, Nodes items) {
  if (items.empty()) return Fit::kFits;
  const Kind kind = graph.kind(items[0]);
  if (kind == Kind::kText) return items.size() > 1 ? of_encode(graph, items) : Fit::kRefused;
  if (items.size() > 1) return Fit::kRefused;
  if (kind == Kind::kBytes || kind == Kind::kByteArray) return Fit::kFits;
  if (is_call_of(graph, items[0], "encode")) return Fit::kFits;
  if (kind == Kind::kInteger) return graph.integer(items[0]) < 0 ? Fit::kRefused : Fit::kUnread;
  if (kind == Kind::kNone || kind == Kind::kFloat || kind == Kind::kName) return Fit::kRefused;
  return Fit::kUnread;
}

Fit of_deque(const Graph& graph, Nodes items) {
  if (items.size() > 2) return Fit::kRefused;
  const Fit first =
      of_nothing_or_iterable(graph, items.first(std::min<std::size_t>(items.size(), 1)));
  if (items.empty() || first != Fit::kFits) return first;
  // Others iterate in ways of their own, and an empty one makes the same deque as an empty list.
  const Kind kind = graph.kind(items[0]);
  if (kind != Kind::kList && kind != Kind::kTuple) return Fit::kUnread;
  if (items.size() < 2) return Fit::kFits;
  if (graph.kind(items[1]) == Kind::kNone) return Fit::kFits;
  return unless_made(graph, items[1],
                     is_small_int(graph, items[1]) && integer_of(graph, items[1]) >= 0);
}
Fit of_defaultdict(const Graph& graph, Nodes items) {
  if (items.empty()) return Fit::kFits;
  const Kind factory = graph.kind(items[0]);
  const bool callable = factory == Kind::kNone ||
                        (factory == Kind::kName && (graph.global(items[0]).rule == nullptr ||
                                                    graph.global(items[0]).rule->is != Is::kValue));
  if (!callable) return unless_made(graph, items[0], false);
  return of_mapping(graph, items.subspan(1));
}

// ---------------------------------------------------------------------------------------- torch

Fit of_layout(const Graph& graph, Nodes items) {
  constexpr std::array<std::string_view, 8> kLayouts{
      "torch.strided",    "torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc",
      "torch.sparse_bsr", "torch.sparse_bsc", "torch._mkldnn",    "torch.jagged"};
  return when(items.size() == 1 && is_text(graph, items[0]) &&
              std::ranges::find(kLayouts, graph.text(items[0])) != kLayouts.end());
}

Fit of_extents(const Graph& graph, Nodes items) {
  if (items.empty()) return Fit::kUnread;
  if (items.size() > 1) return Fit::kRefused;
  const NodeId list = items[0];
  if (graph.kind(list) == Kind::kTuple) {
    if (graph.all_are(list, Kind::kInteger)) return Fit::kFits;
    if (graph.tuple(list).size() > kItemsSeen) return Fit::kUnread;
    for (const NodeId item : graph.tuple(list)) {
      if (!is_small_int(graph, item)) return unless_made(graph, item, false);
    }
    return Fit::kUnread;
  }
  return graph.kind(list) == Kind::kList ? Fit::kUnread : unless_made(graph, list, false);
}

/// A type of device that torch does not know may be a backend's of its own, such as "npu".
Fit of_device(const Graph& graph, Nodes items) {
  constexpr std::array<std::string_view, 20> kTypes{
      "cpu",    "cuda", "ipu",  "xpu",  "mkldnn", "opengl",       "opencl",
      "ideep",  "hip",  "ve",   "fpga", "maia",   "xla",          "lazy",
      "vulkan", "mps",  "meta", "hpu",  "mtia",   "privateuseone"};
  if (items.empty() || items.size() > 2) return Fit::kRefused;
  if (!is_text(graph, items[0]))
    return is_small_int(graph, items[0]) ? Fit::kUnread : Fit::kRefused;
  std::string_view type = graph.text(items[0]);
  const auto colon = type.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view index = type.substr(colon + 1);
    const bool number = !index.empty() && std::ranges::all_of(index, is_digit) &&
                        (index.size() == 1 || index.front() != '0') && index.size() <= 3;
    if (!number || items.size() == 2) return Fit::kRefused;
    type = type.substr(0, colon);
  }
  if (items.size() == 2 && graph.kind(items[1]) != Kind::kNone) {
    if (!is_small_int(graph, items[1]) || integer_of(graph, items[1]) < 0) return Fit::kRefused;
  }
  if (std::ranges::find(kTypes, type) != kTypes.end()) return Fit::kFits;
  const bool word = !type.empty() && std::ranges::all_of(type, [](char c) {
    return (c >= 'a' && c <= 'z') || c == '_' || is_digit(c);
  });
  return word ? Fit::kUnread : Fit::kRefused;
}

Fit of_enum(const Graph& graph, const NameRule& rule, Nodes items) {
  if (items.size() != 1) return Fit::kRefused;
  const Kind kind = graph.kind(items[0]);
  if (kind == Kind::kInteger) return knows_member(rule, graph.integer(items[0]));
  if (kind == Kind::kText) return knows_member(rule, graph.text(items[0]));
  return unless_made(graph, items[0], false);
}

Fit of_reconstruct(const Graph& graph, Nodes items) {
  if (items.size() != 3) return Fit::kRefused;
  const bool named = graph.kind(items[0]) == Kind::kName && graph.kind(items[1]) == Kind::kName;
  if (!named) return unless_made(graph, items[0], graph.kind(items[0]) == Kind::kName);
  const GlobalName& base = graph.global(items[1]);
  if (base.module != "builtins" || base.name != "object") return Fit::kUnread;
  const NameRule* made = graph.global(items[0]).rule;
  if (made == nullptr) return Fit::kUnread;
  // object.__new__ makes instances of classes that are written in Python.
  return made->fresh == Args::kEmpty && made->state == BuildState::kDict ? Fit::kFits
                                                                         : Fit::kUnread;
}

// ---------------------------------------------------------------------------------------- numpy

/// The codes that numpy pickles for its own element types: a kind and a number of bytes.
Fit of_dtype_code(std::string_view code) {
  constexpr std::array<std::string_view, 17> kSized{"b1",  "i1", "i2",  "i4",  "i8", "u1",
                                                    "u2",  "u4", "u8",  "f2",  "f4", "f8",
                                                    "f16", "c8", "c16", "c32", "O8"};
  if (std::ranges::find(kSized, code) != kSized.end()) return Fit::kFits;
  if (code == "M8" || code == "m8") return Fit::kFits;
  constexpr std::string_view kLetters = "?bBhHiIlLqQpPefdgFDGSaUVOMm";
  constexpr std::string_view kAnyLength =
      "SUV";  // a is another name of S, which numpy does not write
  if (code.size() == 1) {
    return kLetters.find(code[0]) != std::string_view::npos ? Fit::kUnread : Fit::kRefused;
  }
  if (code.empty() || code.size() > 20) return Fit::kUnread;
  const std::string_view rest = code.substr(1);
  const bool sized = std::ranges::all_of(rest, is_digit);
  if (sized && kAnyLength.find(code[0]) != std::string_view::npos) {
    return rest.size() <= 9 ? Fit::kFits : Fit::kUnread;
  }
  // Two or three characters are a code, longer ones may be the name of a type of another package.
  return code.size() <= 3 ? Fit::kRefused : Fit::kUnread;
}
Fit of_dtype(const Graph& graph, Nodes items) {
  if (items.empty() || items.size() > 3) return Fit::kRefused;
  if (!is_text(graph, items[0])) return Fit::kUnread;
  for (std::size_t i = 1; i < items.size(); ++i) {  // align and copy, as numpy writes them
    const bool written = graph.kind(items[i]) == Kind::kBool && graph.boolean(items[i]) == (i == 2);
    if (!written) return Fit::kUnread;
  }
  return of_dtype_code(graph.text(items[0]));
}
/// The empty array that BUILD fills: `_reconstruct(ndarray, (0,), b'b')`.
Fit of_reconstructed(const Graph& graph, Nodes items) {
  if (items.size() != 3 || graph.kind(items[0]) != Kind::kName ||
      graph.kind(items[1]) != Kind::kTuple) {
    return items.size() == 3 ? Fit::kUnread : Fit::kRefused;
  }
  const Nodes shape = graph.tuple(items[1]);  // BUILD replaces any other, too
  if (shape.size() != 1 || !is_small_int(graph, shape[0]) || integer_of(graph, shape[0]) != 0) {
    return Fit::kUnread;
  }
  NodeId code = items[2];
  if (is_call_of(graph, code, "encode")) code = graph.tuple(graph.instance(code).args)[0];
  const bool is_bytes = graph.kind(code) == Kind::kBytes || graph.kind(code) == Kind::kText;
  return is_bytes && graph.text(code) == "b" ? Fit::kFits : Fit::kUnread;
}
Fit of_random_state(const Graph& graph, Nodes items) {
  constexpr std::array<std::string_view, 5> kGenerators{"MT19937", "PCG64", "PCG64DXSM", "Philox",
                                                        "SFC64"};
  if (items.size() > 2) return Fit::kRefused;
  if (items.empty()) return Fit::kFits;
  const Kind kind = graph.kind(items[0]);
  if (kind == Kind::kName || kind == Kind::kInstance) return Fit::kFits;
  if (kind != Kind::kText) return Fit::kRefused;
  return when(std::ranges::find(kGenerators, graph.text(items[0])) != kGenerators.end());
}
bool is_uuid_state(const Graph& graph, NodeId state) {
  bool number = false;
  graph.each_pair(graph.chain(state), [&](NodeId key, NodeId value) {
    if (is_text(graph, key) && graph.text(key) == "int") number = is_int(graph, value);
  });
  return number;
}
Fit of_bytes_io(const Graph& graph, NodeId state) {
  if (graph.kind(state) != Kind::kTuple) return Fit::kRefused;
  const Nodes items = graph.tuple(state);
  if (items.size() < 3) return Fit::kRefused;
  const Kind content = graph.kind(items[0]);
  const Kind attributes = graph.kind(items[2]);
  const bool is_bytes = content == Kind::kBytes || content == Kind::kByteArray ||
                        is_call_of(graph, items[0], "encode") ||
                        is_call_of(graph, items[0], "bytes");
  return when(is_bytes && is_small_int(graph, items[1]) && integer_of(graph, items[1]) >= 0 &&
              (attributes == Kind::kNone || attributes == Kind::kDict));
}
/// torch unpacks the fields and compares the fourth with the members of an enum beside the class.
Fit of_tensor_properties(const Graph& graph, const NameRule& rule, NodeId state) {
  constexpr std::size_t kFields = 5;
  constexpr std::size_t kFieldsWithStrides = 6;  // since torch 2.15
  constexpr std::size_t kFormat = 3;
  if (graph.kind(state) != Kind::kTuple) return Fit::kUnread;
  const Nodes fields = graph.tuple(state);
  if (fields.size() != kFields && fields.size() != kFieldsWithStrides) return Fit::kRefused;
  if (graph.kind(fields[kFormat]) != Kind::kInstance) return Fit::kRefused;
  const Instance& format = graph.instance(fields[kFormat]);
  NodeId type = format.type;
  if (graph.kind(type) != Kind::kName) return Fit::kRefused;
  if (graph.global(type).name == "getattr") type = graph.tuple(format.args)[0];
  return when(graph.kind(type) == Kind::kName && graph.global(type).module == rule.module &&
              graph.global(type).name.ends_with("MEM_FORMAT_ENCODING"));
}
/// The parts of a dtype's state after its version: byte order, subarray, names, fields, element
/// size, alignment, flags. For a type of its own numpy writes None three times, -1 twice and 0, or
/// 63 for objects; text and structured types have sizes. It ignores other values for some types and
/// refuses them for others, so a state with such values is not interpreted.
Fit of_dtype_state(const Graph& graph, Nodes args, Nodes items) {
  const bool fits = (items.size() == 8 || items.size() == 9) &&
                    graph.kind(items[0]) == Kind::kInteger && graph.integer(items[0]) >= 0 &&
                    graph.integer(items[0]) <= 4 && is_text(graph, items[1]);
  if (!fits) return Fit::kRefused;
  const bool is_time = items.size() == 9;  // they have a unit, and the version that brought it
  if (graph.integer(items[0]) != (is_time ? 4 : 3)) return Fit::kUnread;
  constexpr std::string_view kOrders = "<>|";
  const std::string_view order = graph.text(items[1]);
  if (order.size() != 1 || kOrders.find(order[0]) == std::string_view::npos) return Fit::kUnread;
  for (const NodeId number : items.subspan(5, 3)) {
    if (!is_small_int(graph, number)) return Fit::kUnread;
  }
  const auto bytes = integer_of(graph, items[5]);
  const auto alignment = integer_of(graph, items[6]);
  const std::string_view code =
      !args.empty() && is_text(graph, args[0]) ? graph.text(args[0]) : std::string_view();
  if ((code == "M8" || code == "m8") != is_time) return Fit::kUnread;
  if (code.starts_with('V')) return bytes >= 0 && alignment >= 1 ? Fit::kFits : Fit::kUnread;
  const bool plain = std::ranges::all_of(
      items.subspan(2, 3), [&](NodeId part) { return graph.kind(part) == Kind::kNone; });
  const bool is_text_type = code.starts_with('U') || code.starts_with('S');
  const bool sizes = is_text_type ? bytes >= 0 && alignment >= 1 : bytes == -1 && alignment == -1;
  const auto flags = integer_of(graph, items[7]);
  const bool flagged = code == "O8" ? flags == 63 : flags == (code.starts_with('U') ? 8 : 0);
  return plain && sizes && flagged ? Fit::kFits : Fit::kUnread;
}

Fit of_numpy_state(const Graph& graph, const NameRule& rule, NodeId args, NodeId state) {
  if (graph.kind(state) != Kind::kTuple) return Fit::kUnread;
  const Nodes items = graph.tuple(state);
  if (rule.name == "dtype") return of_dtype_state(graph, graph.tuple(args), items);
  if (rule.name != "_reconstruct") return Fit::kFits;
  if (items.size() != 5) return items.size() == 4 ? Fit::kUnread : Fit::kRefused;
  const Nodes extents = graph.kind(items[1]) == Kind::kTuple ? graph.tuple(items[1]) : Nodes{};
  if (extents.size() > kItemsSeen) return Fit::kRefused;  // numpy has at most 64 dimensions
  for (const NodeId extent : extents) {
    if (!is_small_int(graph, extent) || integer_of(graph, extent) < 0) return Fit::kRefused;
  }
  const Kind content = graph.kind(items[4]);
  const bool listed = content == Kind::kBytes || content == Kind::kList || content == Kind::kText ||
                      content == Kind::kInstance;
  const bool version = graph.kind(items[0]) == Kind::kInteger && graph.integer(items[0]) == 1;
  return when(version && graph.kind(items[1]) == Kind::kTuple && is_int(graph, items[3]) && listed);
}

}  // namespace

Fit fit_of(const Graph& graph, Args shape, const NameRule& rule, NodeId args) {
  const Nodes items = graph.tuple(args);
  switch (shape) {
    case Args::kNever:
    case Args::kEnumMember:
      return Fit::kUnread;
    case Args::kUnchecked:
      return Fit::kFits;
    case Args::kEmpty:
      return items.empty() ? Fit::kFits : Fit::kUnread;
    case Args::kScalar:
      return of_enum(graph, rule, items);
    case Args::kExtents:
      return of_extents(graph, items);
    case Args::kTexts:
      if (graph.all_are(args, Kind::kText)) return Fit::kFits;
      if (items.size() > kItemsSeen) return Fit::kUnread;
      for (const NodeId item : items) {
        if (!is_text(graph, item)) return unless_made(graph, item, false);
      }
      return Fit::kFits;
    case Args::kTensor:
      return of_tensor(rule.name, items);
    case Args::kLayout:
      return of_layout(graph, items);
    case Args::kDevice:
      return of_device(graph, items);
    case Args::kRange:
      return of_range(graph, items);
    case Args::kSlice:
      return of_count(items, 1, 3);
    case Args::kHashables:
      return of_set(graph, items);
    case Args::kIterable:
      return of_nothing_or_iterable(graph, items);
    case Args::kMapping:
      return of_mapping(graph, items);
    case Args::kComplex:
      return of_complex(graph, items);
    case Args::kInt:
      return of_int(graph, items);
    case Args::kFloat:
      return of_float(graph, items);
    case Args::kBool:
      return of_count(items, 0, 1);
    case Args::kStr:
      return of_str(graph, items);
    case Args::kBytes:
      return of_bytes(graph, items);
    case Args::kEncoded:
      return of_encode(graph, items);
    case Args::kDeque:
      return of_deque(graph, items);
    case Args::kDefaultDict:
      return of_defaultdict(graph, items);
    case Args::kDateTime:
      return of_datetime(graph, items);
    case Args::kDate:
      return of_date(graph, items);
    case Args::kTime:
      return of_time(graph, items);
    case Args::kTimeDelta:
      return of_timedelta(graph, items);
    case Args::kTimeZone:
      return of_timezone(graph, items);
    case Args::kReconstructor:
      return of_reconstruct(graph, items);
    case Args::kPair:
      return of_count(items, 2, 2);
    case Args::kNumpyDType:
      return of_dtype(graph, items);
    case Args::kNumpyArray:
      return of_reconstructed(graph, items);
    case Args::kNumpyScalar:
      return of_count(items, 1, 2);
    case Args::kNumpyBuffer:
      return of_count(items, 4, 4);
    case Args::kNumpyGenerator:
      return of_random_state(graph, items);
  }
  return Fit::kUnread;
}

Fit fit_of(const Graph& graph, const NameRule& rule, NodeId args, NodeId state) {
  const Kind kind = graph.kind(state);
  switch (rule.state) {
    case BuildState::kNever:
      return Fit::kUnread;
    case BuildState::kDict:
      return kind == Kind::kDict ? Fit::kFits : Fit::kUnread;
    case BuildState::kAny:
      return Fit::kFits;
    case BuildState::kTensorProperties:
      return of_tensor_properties(graph, rule, state);
    case BuildState::kUuid:
      return when(kind == Kind::kDict && is_uuid_state(graph, state));
    case BuildState::kBytesIo:
      return of_bytes_io(graph, state);
    case BuildState::kNumpy:
      return of_numpy_state(graph, rule, args, state);
  }
  return Fit::kUnread;
}

bool hashes(const Graph& graph, const NameRule& rule, NodeId state) {
  if (rule.hash != Hash::kOfIndex) return rule.hash == Hash::kYes;
  bool named = false;
  bool fields = state != kNoNode && graph.kind(state) == Kind::kDict;
  if (!fields) return false;
  graph.each_pair(graph.chain(state), [&](NodeId key, NodeId value) {
    if (!is_text(graph, key)) return;
    const std::string_view name = graph.text(key);
    if (name == "fqn") named = graph.hashable(value);
    if (name == "offset") fields = graph.hashable(value);
  });
  return named && fields;
}

}  // namespace reprise::pickle
