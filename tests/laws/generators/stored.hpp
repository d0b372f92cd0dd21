#pragma once
// Generators of what stands in files: pickled values, archives, catalogues.

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "core/format/metadata.hpp"
#include "reprise/value.hpp"
#include "tests/laws/generators/states.hpp"

namespace reprise::laws {

inline rc::Gen<Bytes> byte_strings(std::int64_t most) {
  return rc::gen::exec([most] {
    Bytes bytes(static_cast<std::size_t>(any_from(0, most)));
    for (auto& byte : bytes) byte = static_cast<std::byte>(any_from(0, 255));
    return bytes;
  });
}

inline rc::Gen<std::string> texts() {
  return rc::gen::exec([] {
    std::string text;
    for (auto n = any_from(0, 12); n > 0; --n) {
      text += *rc::gen::element<std::string>("a", "Z", "0", "\n", "'", "\xc3\xa9",
                                             "\xf0\x9f\x99\x82", std::string(1, '\0'));
    }
    return text;
  });
}

inline Value drawn_value(int depth);

inline List drawn_items(int depth) {
  List items;
  for (auto n = any_from(0, 4); n > 0; --n) items.push_back(drawn_value(depth - 1));
  return items;
}

inline Value drawn_leaf() {
  switch (any_from(0, 7)) {
    case 0:
      return NoneType{};
    case 1:
      return any_from(0, 1) == 1;
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
    case 4:
      return *texts();
    case 5:
      return *byte_strings(40);
    case 6:
      return Name{"torch", "float32"};
    default: {
      TensorValue tensor{.dtype = *dtypes(), .shape = *shapes({.extent_most = 3}), .data = {}};
      tensor.data.resize(static_cast<std::size_t>(volume(tensor.shape)) * size_of(tensor.dtype),
                         std::byte{0x3c});
      return tensor;
    }
  }
}

inline Value drawn_value(int depth) {
  switch (any_from(0, depth > 0 ? 6 : 2)) {
    case 3:
      return drawn_items(depth);
    case 4:
      return Tuple{drawn_items(depth)};
    case 5: {
      Dict dict;
      for (auto& item : drawn_items(depth)) {
        dict.emplace_back("key" + std::to_string(dict.size()), std::move(item));
      }
      return dict;
    }
    case 6:
      return Set{{1, "two", Tuple{{3}}}, any_from(0, 1) == 1};
    default:
      return drawn_leaf();
  }
}

/// Values as common states and objects hold them, up to three levels deep.
inline rc::Gen<Value> values() {
  return rc::gen::exec([] { return drawn_value(3); });
}

using Records = std::vector<std::pair<std::string, Bytes>>;

/// Contents of archives, by the names of their records.
inline rc::Gen<Records> archive_records() {
  return rc::gen::exec([] {
    Records records;
    const auto count = static_cast<std::size_t>(any_from(1, 12));
    for (std::size_t i = 0; i < count; ++i) {
      records.emplace_back(i == 0 ? "data.pkl" : "data/" + std::to_string(i - 1),
                           *byte_strings(150));
    }
    return records;
  });
}

/// Metadata of checkpoints: tensors cut into boxes, and objects, in one to three files.
inline rc::Gen<Metadata> metadata_tables() {
  return rc::gen::exec([] {
    Metadata metadata;
    Catalog& catalog = metadata.catalog;
    const auto files = static_cast<std::uint32_t>(any_from(1, 3));
    for (std::uint32_t f = 0; f < files; ++f) {
      catalog.files.push_back("__" + std::to_string(f) + "_0.distcp");
    }
    std::uint64_t end = 0;
    const auto range = [&end] {
      const auto length = static_cast<std::uint64_t>(any_from(1, 1000));
      return ByteRange{std::exchange(end, end + length), length};
    };
    std::uint32_t place = 0;
    const auto file = [files] { return static_cast<FileIndex>(any_from(0, files - 1)); };
    for (auto n = any_from(0, 3); n > 0; --n) {
      StoredTensor tensor{.key = "t" + std::to_string(9 - n),
                          .dtype = *dtypes(),
                          .shape = *shapes(),
                          .chunks = {},
                          .original_shape = {}};
      tensor.place = place++;
      for (const auto& box : *tilings_of(tensor.shape)) {
        // A catalogue knows a chunk by its offset, so an empty one must not stand beside another.
        if (box.empty() && !tensor.chunks.empty()) continue;
        if (box.empty() && volume(tensor.shape) > 0) continue;
        tensor.chunks.push_back({box, file(), range()});
      }
      catalog.tensors.push_back(std::move(tensor));
    }
    for (auto n = any_from(0, 3); n > 0; --n) {
      StoredObject object{.key = "x" + std::to_string(9 - n), .file = file(), .range = range()};
      object.place = place++;
      catalog.objects.push_back(std::move(object));
    }
    return metadata;
  });
}

}  // namespace reprise::laws
