#include "core/format/pickle/pickle_value.hpp"

#include <algorithm>

#include "core/format/pickle/numpy_array.hpp"
#include "core/format/pickle/pickle_tensor.hpp"
#include "core/format/pickle/python_dict.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace pickle {
namespace {

constexpr int kDepthMax = 200;
/// Upper limit on the number of copies of shared parts. A limit is needed because a pickle can
/// refer to one part any number of times, and the tree of values has a copy for each reference.
/// Parts that are not shared cannot outnumber the pickle's bytes.
constexpr std::size_t kSharedValuesMax = 65536;

}  // namespace

ValueReader::ValueReader(const Graph& graph, const PickleSource& where, StorageSource* storages,
                         std::size_t bytes)
    : graph_(graph),
      where_(where),
      storages_(storages),
      value_budget_(bytes + kSharedValuesMax),
      text_budget_(16 * bytes + (1U << 20U)) {}

void ValueReader::charge(std::size_t& budget, std::size_t cost) {
  if (cost > budget) {
    throw NotInterpreted{"expanded, it would be many times larger than the pickle"};
  }
  budget -= cost;
}

Value ValueReader::read(NodeId node) {
  if (depth_ >= kDepthMax) {
    throw NotInterpreted{"it nests deeper than " + std::to_string(kDepthMax) +
                         " levels or contains itself"};
  }
  if (graph_.unread(node)) {
    throw NotInterpreted{"it is made or changed in a way that is not interpreted here"};
  }
  ++depth_;
  Value value;
  switch (graph_.kind(node)) {
    case Kind::kNone:
      break;
    case Kind::kBool:
      value = graph_.boolean(node);
      break;
    case Kind::kInteger:
      value = graph_.integer(node);
      break;
    case Kind::kBigInteger:
      value = BigInt{to_bytes(text(node))};
      break;
    case Kind::kFloat:
      value = graph_.floating(node);
      break;
    case Kind::kText:
      value = text(node);
      break;
    case Kind::kBytes:
      value = to_bytes(text(node));
      break;
    case Kind::kByteArray:
      value = Object{{"builtins", "bytearray"}, Object::How::kCall, {to_bytes(text(node))}};
      break;
    case Kind::kTuple:
      value = Tuple{read_tuple(node)};
      break;
    case Kind::kList:
      value = read_chain(graph_.chain(node));
      break;
    case Kind::kDict:
      value = read_pairs(graph_.chain(node));
      break;
    case Kind::kSet:
      value = read_set(graph_.chain(node), false);
      break;
    case Kind::kFrozenSet:
      value = read_set(graph_.chain(node), true);
      break;
    case Kind::kName:
      value = read_name(node);
      break;
    case Kind::kInstance:
      value = read_instance(node);
      break;
    case Kind::kStorage:
      throw NotInterpreted{"it holds a storage outside of a tensor"};
  }
  --depth_;
  return value;
}

List ValueReader::read_chain(Chain chain) {
  List list;
  const std::size_t count = graph_.count(chain);
  charge(value_budget_, count);
  list.reserve(count);
  graph_.each(chain, [&](NodeId item) { list.push_back(read(item)); });
  return list;
}

Dict ValueReader::read_pairs(Chain chain) {
  PythonDict dict;
  const std::size_t count = graph_.count(chain);
  charge(value_budget_, count);
  dict.reserve(count / 2);
  graph_.each_pair(chain, [&](NodeId key, NodeId value) {
    Value read_key = read(key);
    dict.set(std::move(read_key), read(value));
  });
  return dict.take();
}

/// Fills the set as Python does: among equal items, such as 1 and True, the first is kept.
Set ValueReader::read_set(Chain chain, bool frozen) {
  PythonDict items;
  charge(value_budget_, graph_.count(chain));
  graph_.each(chain, [&](NodeId item) {
    if (!graph_.hashable(item)) {
      throw error_at(
          where_, 0, Code::kTornFile,
          "a " + std::string(name_of(graph_.kind(item))) + ", which is mutable, in a set: garbled");
    }
    items.set(read(item), NoneType{});
  });
  Set set;
  set.frozen = frozen;
  for (auto& [item, none] : items.take()) set.items.push_back(std::move(item));
  return set;
}

List ValueReader::read_tuple(NodeId node) {
  List list;
  charge(value_budget_, graph_.tuple(node).size());
  list.reserve(graph_.tuple(node).size());
  for (const NodeId item : graph_.tuple(node)) list.push_back(read(item));
  return list;
}

std::string ValueReader::text(NodeId node) {
  charge(text_budget_, graph_.text(node).size());
  return std::string(graph_.text(node));
}

Name ValueReader::name(NodeId node) {
  const GlobalName& global = graph_.global(node);
  return {normal_numpy_module(std::string(global.module)), std::string(global.name)};
}

Value ValueReader::read_name(NodeId node) {
  const NameRule* rule = graph_.global(node).rule;
  if (rule != nullptr && rule->call == Args::kEnumMember) {
    throw NotInterpreted{
        "it holds builtins.getattr, which reads attributes when it is called; unpickling it only "
        "imports it"};
  }
  return name(node);
}

namespace {

/// True for classes whose instances are whole only with their state. Python may load one without
/// it.
bool needs_state(const GlobalName& type) {
  return (type.module == "uuid" && type.name == "UUID") ||
         (type.module == "numpy" && type.name == "dtype");
}

}  // namespace

Value ValueReader::read_instance(NodeId node) {
  const std::string_view tensor = tensor_call(graph_, node);
  if (tensor == "_rebuild_from_type_v2") return read_typed_tensor(node);
  const bool parameter = tensor.starts_with("_rebuild_parameter");
  if (!tensor.empty() && !parameter) return read_tensor(node);
  // Called only for its checks: throws if the arguments of the call are wrong.
  if (parameter) describe_tensor(graph_, node, where_);
  const Instance& instance = graph_.instance(node);
  if (graph_.kind(instance.type) != Kind::kName) {
    throw NotInterpreted{"it calls what another call returned"};
  }
  if (auto known = read_known(instance)) return std::move(*known);
  if (instance.state == kNoNode && needs_state(graph_.global(instance.type))) {
    throw NotInterpreted{"it holds a " + std::string(graph_.global(instance.type).name) +
                         " without the state that Python writes; this use is not allowed"};
  }
  Object object;
  object.type = name(instance.type);
  // An empty container is the same however it is made.
  const bool container = graph_.global(instance.type).module == "collections";
  object.how = instance.called || container ? Object::How::kCall : Object::How::kNew;
  object.args = read_tuple(instance.args);
  if (instance.state != kNoNode) {
    charge(value_budget_, 1);
    object.state.push_back(read(instance.state));
  }
  object.list_items = read_chain(instance.list_items);
  object.dict_items = read_pairs(instance.dict_items);
  normalize_numpy_array(object);
  if (!numpy_accepts(object)) {
    throw error_at(where_, 0, Code::kTornFile,
                   "a numpy array whose bytes do not fit its type and shape: garbled");
  }
  return object;
}

std::optional<Value> ValueReader::read_known(const Instance& instance) {
  const GlobalName& type = graph_.global(instance.type);
  const auto args = graph_.tuple(instance.args);
  if (!instance.called) return std::nullopt;
  if (type.module == "_codecs" && type.name == "encode") return read_encoded(args);
  if (type.module != "builtins") return std::nullopt;
  if (type.name == "getattr") return read_enum_member(args);
  if (type.name == "bytes" && args.empty()) return Bytes{};
  const bool of_list = args.size() == 1 && graph_.kind(args[0]) == Kind::kList;
  if ((type.name == "set" || type.name == "frozenset") && (args.empty() || of_list)) {
    return read_set(args.empty() ? Chain{} : graph_.chain(args[0]), type.name == "frozenset");
  }
  return std::nullopt;
}

Value ValueReader::read_enum_member(std::span<const NodeId> args) {
  if (graph_.kind(args[0]) != Kind::kName) {
    throw NotInterpreted{"it reads an attribute of what a call returned"};
  }
  const Name type = name(args[0]);
  const auto value = enum_value(type.module, type.name, graph_.text(args[1]));
  if (!value || args.size() != 2) {
    throw NotInterpreted{"it reads the attribute " + std::string(graph_.text(args[1])) + " of " +
                         type.module + "." + type.name};
  }
  Object member{type, Object::How::kCall};
  if (const auto* number = std::get_if<std::int64_t>(&*value)) member.args = {*number};
  if (const auto* word = std::get_if<std::string_view>(&*value)) member.args = {std::string(*word)};
  return member;
}

/// Decodes bytes as protocol 2 pickles them: as a call that encodes a str in latin1. Each code
/// point of the str is the value of one byte.
Value ValueReader::read_encoded(std::span<const NodeId> args) {
  const bool shaped = args.size() == 2 && graph_.kind(args[0]) == Kind::kText &&
                      graph_.kind(args[1]) == Kind::kText;
  if (!shaped || (graph_.text(args[1]) != "latin1" && graph_.text(args[1]) != "latin-1")) {
    throw NotInterpreted{"_codecs.encode is called with something other than a str and 'latin1'"};
  }
  const std::string encoded = text(args[0]);
  Bytes bytes;
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    const auto lead = static_cast<unsigned char>(encoded[i]);
    if (lead < 0x80) {
      bytes.push_back(static_cast<std::byte>(lead));
    } else if (lead <= 0xc3) {  // the graph's text is valid UTF-8, so one more byte follows
      const auto low = static_cast<unsigned char>(encoded[++i]) & 0x3fU;
      bytes.push_back(static_cast<std::byte>(((lead & 0x03U) << 6U) | low));
    } else {
      throw error_at(where_, 0, Code::kTornFile,
                     "_codecs.encode is given characters that latin1 lacks: garbled");
    }
  }
  return bytes;
}

/// Charges the budget for every element. Elements that share memory, as in an expanded tensor, are
/// all charged, because reading duplicates them.
void ValueReader::charge_elements(const TensorDescription& tensor) {
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) return;
  const auto elements = static_cast<std::size_t>(volume(tensor.shape));
  charge(tensor_budget_, elements);  // comes first, so that the next product cannot overflow
  charge(tensor_budget_, elements * (size_of(tensor.dtype) - 1));
}

Value ValueReader::read_tensor(NodeId node) {
  if (storages_ == nullptr)
    throw NotInterpreted{"it holds a tensor, whose storage is not available here"};
  const TensorDescription tensor = describe_tensor(graph_, node, where_);
  if (!tensor.folded.empty()) {
    throw error_at(where_, 0, Code::kUnsupported,
                   "a tensor of " + std::to_string(kMaxNdim - 1 + tensor.folded.size()) +
                       " dimensions in a value; at most " + std::to_string(kMaxNdim) +
                       " are supported");
  }
  const auto storage = storages_->storage(tensor.storage_key);
  if (!storage) {
    throw error_at(
        where_, 0, Code::kTornFile,
        "the archive lacks the storage data/" + tensor.storage_key + " of a tensor in it");
  }
  if (seen_storages_.insert(tensor.storage_key).second) tensor_budget_ += 4 * storage->size();
  if (storage->size() >= static_cast<std::uint64_t>(tensor.storage_bytes())) {
    charge_elements(tensor);
  }
  return TensorValue{tensor.dtype, tensor.shape, gather(tensor, *storage, where_),
                     tensor.requires_grad};
}

/// Reads a tensor with attributes, or of a class other than torch.Tensor.
Value ValueReader::read_typed_tensor(NodeId node) {
  const Instance& instance = graph_.instance(node);
  Value tensor = read_tensor(node);  // this checks the arguments of the call
  const auto args = graph_.tuple(instance.args);
  charge(value_budget_, args.size());
  return Object{
      name(instance.type), Object::How::kCall, {read(args[1]), std::move(tensor), read(args[3])}};
}

}  // namespace pickle

PickledValue decode_value(ByteSpan input, const PickleSource& where, StorageSource* storages) {
  std::size_t end = 0;
  return decode_value(input, where, storages, end);
}

PickledValue decode_value(ByteSpan input, const PickleSource& where, StorageSource* storages,
                          std::size_t& end) {
  pickle::Reading reading = pickle::read_graph(input, pickle::Grammar::kBytesItem, where);
  end = reading.end;
  PickledValue result;
  result.opaque = reading.opaque;
  result.reason = std::move(reading.reason);
  result.unlisted_names = std::move(reading.unlisted_names);
  if (result.opaque) return result;
  try {
    result.value =
        pickle::ValueReader(reading.graph, where, storages, input.size()).read(reading.root);
  } catch (pickle::NotInterpreted& why) {
    result.opaque = true;
    result.reason = std::move(why.reason);
  } catch (const Error& error) {
    if (error.code() != Code::kUnsupported) throw;
    result.opaque = true;
    result.reason = error.message();
  }
  return result;
}

}  // namespace reprise
