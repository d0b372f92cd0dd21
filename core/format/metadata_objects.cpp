#include "core/format/metadata_objects.hpp"

#include "core/geometry/folded_shape.hpp"
#include "reprise/error.hpp"

namespace reprise::pickle {

void Objects::fail(Code code, std::string message, NodeId at) const {
  // Only text nodes know their position in the file.
  const bool known = at != kNoNode && graph_.kind(at) == Kind::kText;
  ErrorPlace place{.key = where_.key, .file = where_.file};
  if (known) place.offset = where_.offset + graph_[at].low;
  throw Error(code, std::move(message), std::move(place));
}

std::string_view Objects::type_name(NodeId node) const {
  if (node == kNoNode || graph_.kind(node) != Kind::kInstance) return {};
  const Instance& instance = graph_.instance(node);
  const GlobalName& type = graph_.global(instance.type);
  if (type.name != "_reconstructor") return type.name;
  const auto args = graph_.tuple(instance.args);
  const bool named = !args.empty() && graph_.kind(args[0]) == Kind::kName;
  return named ? graph_.global(args[0]).name : std::string_view{};
}

NodeId Objects::attributes_of(NodeId node) const {
  if (node == kNoNode) return kNoNode;
  if (graph_.kind(node) == Kind::kDict) return node;
  if (graph_.kind(node) != Kind::kInstance) return kNoNode;
  const NodeId state = graph_.instance(node).state;
  return state != kNoNode && graph_.kind(state) == Kind::kDict ? state : kNoNode;
}

Chain Objects::entries(NodeId node, const char* what) const {
  if (node != kNoNode && graph_.kind(node) == Kind::kDict) return graph_.chain(node);
  if (type_name(node) == "OrderedDict") return graph_.instance(node).dict_items;
  fail(Code::kTornFile, std::string(what) + " is not a dict");
}

Chain Objects::list(NodeId node, const char* what) const {
  if (node != kNoNode && graph_.kind(node) == Kind::kList) return graph_.chain(node);
  fail(Code::kTornFile, std::string(what) + " is not a list");
}

std::string_view Objects::text(NodeId node, const char* what) const {
  if (node == kNoNode || graph_.kind(node) != Kind::kText) {
    fail(Code::kTornFile, std::string(what) + " is not a string");
  }
  return graph_.text(node);
}

std::int64_t Objects::count(NodeId node, const char* what) const {
  if (node == kNoNode || graph_.kind(node) != Kind::kInteger) {
    fail(Code::kTornFile, std::string(what) + " is not a 64-bit integer");
  }
  if (graph_.integer(node) < 0) {
    fail(Code::kTornFile,
         std::string(what) + " is negative: " + std::to_string(graph_.integer(node)));
  }
  return graph_.integer(node);
}

Dims Objects::extents(NodeId node, const char* what, FoldedExtents* last) const {
  NodeId list = node;
  if (type_name(node) == "Size") list = graph_.tuple(graph_.instance(node).args)[0];
  Dims dims;
  each_item(list, what, [&](NodeId item) {
    if (dims.size() < kMaxNdim) return dims.push_back(count(item, what));
    const std::size_t most = last == nullptr ? kMaxNdim : kTorchNdimMax;
    if (last == nullptr || kMaxNdim - 1 + last->size() == most) {
      fail(Code::kUnsupported, std::string(what) + " has more than " + std::to_string(most) +
                                   " dimensions, which is more than is handled");
    }
    if (last->empty()) last->push_back(dims[kMaxNdim - 1]);
    last->push_back(count(item, what));
  });
  return dims;
}

}  // namespace reprise::pickle
