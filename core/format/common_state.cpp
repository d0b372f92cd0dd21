#include "core/format/common_state.hpp"

#include <utility>

#include "core/base/check.hpp"

namespace reprise {

namespace {

void require_dict(const Value& value, const ErrorPlace& place) {
  if (value.as<Dict>() == nullptr) {
    throw Error(Code::kTornFile, "the common state is not a dict but " + to_string(value, 40),
                place);
  }
}

}  // namespace

BytesItem read_common_file(ByteSpan bytes, const ErrorPlace& place) {
  BytesItem item = read_bytes_item(bytes, place);
  if (item.value) require_dict(*item.value, place);
  return item;
}

BytesItem read_common_object(ByteSpan bytes, const ErrorPlace& place) {
  BytesItem item = read_bytes_item(bytes, place);
  if (!item.value) return item;
  List* list = item.value->as<List>();
  if (list == nullptr || list->size() != 1) {
    throw Error(
        Code::kTornFile,
        "the common state's object is not a list of one entry but " + to_string(*item.value, 40),
        place);
  }
  Value state = std::move(list->front());
  require_dict(state, place);
  item.value = std::move(state);
  return item;
}

Bytes write_common_file(const Dict& state) { return write_bytes_item(state, "common"); }

Bytes common_file(const Value& state) {
  if (const Bytes* written = state.as<Bytes>()) return *written;
  const Dict* dict = state.as<Dict>();
  CHECK(dict != nullptr);
  return write_common_file(*dict);
}

}  // namespace reprise
