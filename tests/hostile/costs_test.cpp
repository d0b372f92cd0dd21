// Tests the cost of reading structures whose components are shared, repeated, deeply nested or
// colliding, at sizes from 64 KiB to 4 MiB. A reader that visits a shared component again for each
// reference to it needs quadratic time and exceeds the bounds.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "core/format/bytes_item.hpp"
#include "core/format/json_document.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tensor_item.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/archive_writer.hpp"
#include "core/verify/verify_catalog.hpp"
#include "core/verify/verify_objects.hpp"
#include "driver/language/model_file.hpp"
#include "driver/language/scenario.hpp"
#include "reports/gate/demand.hpp"
#include "reprise/value.hpp"
#include "tests/core/format/pickles.hpp"
#include "tests/hostile/allocations.hpp"
#include "tests/hostile/bounded.hpp"

namespace reprise::test::costs_test {
namespace {

/// A structure of about `size` bytes.
struct Shape {
  std::string name;
  std::function<std::string(std::size_t size)> make;
};

/// Reads each structure at each size. Tries a size only if all smaller sizes stayed within the
/// bounds, since with quadratic time the largest size would take hours.
template <class Read>
void expect_each_bounded(const std::vector<Shape>& shapes, const std::vector<std::size_t>& sizes,
                         Read&& read) {
  for (const Shape& shape : shapes) {
    for (const std::size_t size : sizes) {
      if (size > sizes.front() && (!allocations_counted() || testing::Test::HasFailure())) break;
      const std::string made = shape.make(size);
      expect_bounded(shape.name, made.size(), [&] { read(made); });
    }
  }
}

constexpr std::size_t kSmall = std::size_t{64} << 10U;
/// With quadratic time, the middle size exceeds the bounds within seconds; the largest size would
/// take hours.
const std::vector<std::size_t> kSizes = {kSmall, std::size_t{512} << 10U, std::size_t{4} << 20U};

std::string numbered(std::size_t i) { return "J" + le(static_cast<std::int32_t>(i)); }
std::string short_text(const std::string& value) {
  return "\x8c"s + static_cast<char>(value.size()) + value;
}
/// Returns opcodes that run `body`, store the value it pushed in the memo, and pop the value.
std::string kept(const std::string& body, char at) { return body + "q"s + at + "0"; }

/// Returns the opcodes of a list of `calls` function calls. In each call, the memo contains the
/// function at \1 and the arguments at \2.
std::string called(std::size_t calls) { return "](" + times(calls, "h\1h\2R") + "e"; }

/// Makes pickles that call `callee` many times. All calls share one argument, a long tuple that
/// repeats `item`.
Shape shared_arguments(const std::string& name, const std::string& callee, const std::string& item,
                       bool wrapped) {
  return {name, [=](std::size_t size) {
            const std::string args = "(" + times(size / 2 / item.size(), item) + "t";
            return kept(callee, '\1') + kept(args + (wrapped ? "\x85" : ""), '\2') +
                   called(size / 10);
          }};
}

/// Returns opcodes that add `count` items to a container and `count` items to a list, in turn.
std::string runs(std::size_t count, const std::string& container, const std::string& add) {
  return container + "q\3" + "0]q\4" + "0(" + times(count, "h\3" + add + "0h\4Na0") + "1";
}

std::vector<Shape> pickle_shapes() {
  const std::string get = kept(global("builtins", "getattr"), '\1');
  const std::string space = kept(global("argparse", "Namespace"), '\1');
  return {
      shared_arguments("torch.Size of one long tuple", global("torch", "Size"), "K\1", true),
      shared_arguments("paths of one long tuple", global("pathlib", "PosixPath"), text("a"), false),
      shared_arguments("sizes of texts", global("torch", "Size"), text("a"), true),
      shared_arguments("tuples of one long tuple", global("builtins", "tuple"), "N", true),
      shared_arguments("classes off the list", global("my", "Class"), "N", false),
      {"sets of one long list",
       [](std::size_t size) {
         return kept(global("builtins", "set"), '\1') +
                kept("](" + times(size / 2, "N") + "e\x85", '\2') + called(size / 10);
       }},
      {"bytes of one long text",
       [](std::size_t size) {
         return kept(global("_codecs", "encode"), '\1') +
                kept(text(std::string(size / 2, 'x')) + text("latin1") + "\x86", '\2') +
                called(size / 10);
       }},
      {"one long attribute",
       [=](std::size_t size) {
         return get + kept("N" + text(std::string(size / 2, '.')) + "\x86", '\2') +
                called(size / 10);
       }},
      {"one attribute again and again",
       [=](std::size_t size) {
         return get + kept(global("my", "Class") + text("attribute") + "\x86", '\2') +
                called(size / 5);
       }},
      {"very many attributes",
       [=](std::size_t size) {
         return get + kept(global("my", "Class"), '\2') + "](" +
                each(size / 12,
                     [](std::size_t i) {
                       return "h\1h\2" + short_text(std::to_string(i)) + "\x86R";
                     }) +
                "e";
       }},
      {"one long state",
       [=](std::size_t size) {
         return space + kept("}(" + times(size / 4, "NN") + "u", '\2') + "](" +
                times(size / 14, "h\1)\x81h\2b") + "e";
       }},
      {"keywords of very many runs",
       [](std::size_t size) {
         return kept(global("collections", "OrderedDict"), '\1') + runs(size / 20, "}", "NNs") +
                "](" + times(size / 12, "h\1)h\3\x92") + "e";
       }},
      {"a list of very many runs, again and again",
       [](std::size_t size) {
         return runs(size / 18, "]", "Na") + "](" + times(size / 4, "h\3") + "e";
       }},
      {"states in states, again and again",
       [](std::size_t size) {
         const std::string link = global("torch._C", "Generator");
         std::string chain = kept(link, '\1') + "N";
         for (int i = 0; i < 150; ++i) chain += "q\2" + "0h\1)\x81h\2b"s;
         return chain + "q\2" + "0](" + times(size / 2, "h\2") + "e";
       }},
      {"one object as a key again and again",
       [=](std::size_t size) {
         return space + "h\1)\x81}(" + times(size / 6, "NN") + "ubq\2" + "0}(" +
                times(size / 6, "h\2N") + "u";
       }},
      {"one deep tuple as a key again and again",
       [](std::size_t size) {
         return "N" + times(std::min<std::size_t>(size / 2, 150), "\x85") + "q\2" + "0}(" +
                times(size / 4, "h\2N") + "u";
       }},
      {"deep tuples as keys",
       [](std::size_t size) {
         return "}(N" + times(size / 4, "\x85q\1") + times(size / 16, "Nh\1") + "Nu";
       }},
      {"sets in sets",
       [](std::size_t size) { return times(size / 3, "(") + "K\1" + times(size / 3, "\x91"); }},
      {"one wide frozenset in many",
       [](std::size_t size) {
         return kept("(" + times(size / 2, "N") + "\x91", '\1') + "](" +
                times(size / 8, "(h\1\x91") + "e";
       }},
      {"texts that begin alike as keys",
       [](std::size_t size) {
         return "}(" +
                each(size / 1000,
                     [](std::size_t i) {
                       return text(std::string(980, 'k') + std::to_string(i)) + "N";
                     }) +
                "u";
       }},
      {"names off the list that begin alike",
       [](std::size_t size) {
         return "(" +
                each(size / 240,
                     [](std::size_t i) {
                       return global(std::string(220, 'm'), std::to_string(i));
                     }) +
                "t";
       }},
  };
}

TEST(Costs, values_of_pickles) {
  expect_each_bounded(pickle_shapes(), kSizes, [](const std::string& body) {
    const PickledValue read = decode(body);
    (void)hash_of(read.value);
  });
}

/// Makes an item with a list of tensors that share one storage. The opcodes `parts` store common
/// values in the memo. The opcodes `call` make one tensor from these values; they are repeated
/// `calls` times.
std::string item_of_tensors(const std::string& parts, std::size_t calls, const std::string& call) {
  const std::string storage =
      "(" + text("storage") + global("torch", "FloatStorage") + text("0") + text("cpu") + "K\4tQ";
  const std::string body = kept(global("torch._utils", "_rebuild_tensor_v2"), '\5') +
                           kept(storage, '\6') +
                           kept(global("collections", "OrderedDict") + ")R", '\7') + parts + "](" +
                           times(calls, call) + "e";
  ArchiveWriter writer("archive");
  writer.add("data.pkl", pickle(body));
  writer.add("data/0", Bytes(16));
  writer.add("version", as_bytes("3\n"));
  writer.finish();
  return std::string(as_text(writer.take()));
}

TEST(Costs, tensors_in_objects) {
  const std::string call = "h\5(h\6K\0K\1\x85K\1\x85\x89h\7h\2tR"s;
  const std::vector<Shape> shapes = {
      {"one dict of flags of many tensors",
       [=](std::size_t size) {
         return item_of_tensors(
             kept("}(" + each(size / 20, [](std::size_t i) { return numbered(i) + "\x89"; }) + "u",
                  '\2'),
             size / 40, call);
       }},
      {"one flag again and again",
       [=](std::size_t size) {
         return item_of_tensors(kept("}(" + times(size / 12, text("neg") + "\x89") + "u", '\2'),
                                size / 40, call);
       }},
      {"one long tuple of sizes",
       [](std::size_t size) {
         return item_of_tensors(kept("(" + times(size / 4, "K\1") + "t", '\2'), size / 40,
                                "h\5(h\6K\0h\2h\2\x89h\7tR"s);
       }},
      {"one expanded tensor",
       [](std::size_t size) {
         return item_of_tensors("", size / 20, "h\5(h\6K\0M\xe8\3\x85K\0\x85\x89h\7tR"s);
       }},
  };
  expect_each_bounded(shapes, kSizes, [](const std::string& item) {
    (void)hash_of(read_bytes_item(as_bytes(item)).value.value_or(NoneType{}));
  });
}

// --- .metadata -----------------------------------------------------------------------------------

/// Makes texts of 16 letters that collide: they have the same std::hash if std::hash is
/// MurmurHash64A, as in libstdc++. In each text, the second half is computed from the first so that
/// the hash is always the same.
class Colliding {
 public:
  std::string next() {
    for (;;) {
      const std::uint64_t first = random_() & kAscii;
      const std::uint64_t second = unmixed(kTarget ^ ((kStart ^ mixed(first)) * kFactor));
      if ((second & ~kAscii) != 0) continue;
      std::array<std::uint64_t, 2> halves = {first, second};
      std::string text(sizeof halves, '\0');
      std::memcpy(text.data(), halves.data(), text.size());
      if (text.find_first_of(std::string_view("\0\\/", 3)) == std::string::npos) return text;
    }
  }

 private:
  static constexpr std::uint64_t kFactor = 0xc6a4a7935bd1e995ULL;
  static constexpr std::uint64_t kStart = 0xc70f6907ULL ^ (16 * kFactor);
  static constexpr std::uint64_t kTarget = 0x0123456789abcdefULL;
  static constexpr std::uint64_t kAscii = 0x7f7f7f7f7f7f7f7fULL;

  static std::uint64_t mixed(std::uint64_t half) {
    half *= kFactor;
    return (half ^ (half >> 47U)) * kFactor;
  }
  static std::uint64_t unmixed(std::uint64_t half) {
    half *= inverse();
    return (half ^ (half >> 47U)) * inverse();
  }
  /// Returns the inverse of kFactor modulo 2^64, computed by Newton's method.
  static std::uint64_t inverse() {
    std::uint64_t x = kFactor;
    for (int i = 0; i < 6; ++i) x *= 2 - kFactor * x;
    return x;
  }

  std::mt19937_64 random_{1};
};

#ifdef __GLIBCXX__
TEST(Costs, texts_that_are_to_collide_do) {
  Colliding texts;
  const std::string first = texts.next();
  EXPECT_EQ(std::hash<std::string_view>()(first), std::hash<std::string_view>()(texts.next()));
}
#endif

const std::string kDcp = "torch.distributed.checkpoint.metadata";

std::string made(const std::string& module, const std::string& name, const std::string& items) {
  return global(module, name) + ")\x81}(" + items + "ub";
}
std::string metadata(const std::string& keys, const std::string& more = "") {
  return made(kDcp, "Metadata", text("state_dict_metadata") + "}(" + keys + "u" + more);
}
/// Returns opcodes that store the attributes of a one-dimensional tensor of length 1 and of its
/// chunk in the memo, at \1 to \3.
std::string tensor_parts() {
  return kept(global(kDcp, "TensorProperties") + ")\x81(" + global("torch", "float32") + "NN" +
                  global(kDcp, "_MEM_FORMAT_ENCODING") + "K\0\x85RNtb"s,
              '\1') +
         kept(global("torch", "Size") + "K\1\x85\x85R", '\2') +
         kept(global("torch", "Size") + "K\0\x85\x85R"s, '\3');
}
std::string tensor(const std::string& chunks) {
  return made(
      kDcp, "TensorStorageMetadata",
      text("properties") + "h\1" + text("size") + "h\2" + text("chunks") + "](" + chunks + "e");
}
std::string chunk() {
  return made(kDcp, "ChunkStorageMetadata", text("offsets") + "h\3" + text("sizes") + "h\2");
}

std::string stored_at(const std::string& path) {
  return made("torch.distributed.checkpoint.filesystem", "_StorageInfo",
              text("relative_path") + text(path) + text("offset") + "K\1" + text("length") + "K\1");
}

std::vector<Shape> metadata_shapes() {
  const std::string object = kept(made(kDcp, "BytesStorageMetadata", ""), '\1');
  const auto storage = [](const std::string& key, const std::string& path) {
    return made(kDcp, "MetadataIndex", text("fqn") + text(key)) + stored_at(path);
  };
  return {
      {"keys of one hash",
       [=](std::size_t size) {
         Colliding texts;
         return object +
                metadata(each(size / 23, [&](std::size_t) { return text(texts.next()) + "h\1"; }));
       }},
      {"paths of one hash",
       [=](std::size_t size) {
         Colliding texts;
         return object +
                metadata("", text("storage_data") + "}(" + each(size / 310, [&](std::size_t) {
                               return storage("k", texts.next());
                             }) + "u");
       }},
      {"keys of planner_data of one hash",
       [=](std::size_t size) {
         Colliding texts;
         return object +
                metadata("", text("planner_data") + "}(" + each(size / 22, [&](std::size_t) {
                               return text(texts.next()) + ")";
                             }) + "u");
       }},
      {"keys that begin alike",
       [=](std::size_t size) {
         return object + metadata(each(size / 270, [](std::size_t i) {
                  return text(std::string(250, 'k') + std::to_string(i)) + "h\1";
                }));
       }},
      {"one long key of storage",
       [=](std::size_t size) {
         const std::string index = made(kDcp, "MetadataIndex", text("fqn") + "h\2");
         return object + kept(text(std::string(size / 2, 'k')), '\2') +
                metadata("", text("storage_data") + "}(" +
                                 times(size / 500, index + stored_at("p")) + "u");
       }},
      {"one list of chunks of many tensors",
       [](std::size_t size) {
         return tensor_parts() + kept("](" + times(size / 400, chunk()) + "e", '\4') +
                metadata(each(size / 400, [](std::size_t i) {
                  return text("w" + std::to_string(i)) +
                         made(kDcp, "TensorStorageMetadata",
                              text("properties") + "h\1" + text("size") + "h\2" + text("chunks") +
                                  "h\4");
                }));
       }},
      {"one long size of many tensors",
       [](std::size_t size) {
         return tensor_parts() + kept("(" + times(size / 4, "K\1") + "t", '\5') +
                kept(global("torch", "Size"), '\6') + metadata(each(size / 400, [](std::size_t i) {
                  return text("w" + std::to_string(i)) +
                         made(kDcp, "TensorStorageMetadata",
                              text("properties") + "h\1" + text("size") + "h\6h\5\x85R" +
                                  text("chunks") + "]");
                }));
       }},
      {"chunks that all begin at one place",
       [](std::size_t size) {
         return tensor_parts() + kept(chunk(), '\4') +
                metadata(text("w") + tensor(times(size / 18, "h\4" + times(8, "N0"))));
       }},
      {"chunks of one place and storage of each",
       [](std::size_t size) {
         const std::string index =
             made(kDcp, "MetadataIndex", text("fqn") + text("w") + text("offset") + "h\3");
         return tensor_parts() + kept(chunk(), '\4') +
                metadata(
                    text("w") + tensor(times(size / 64, "h\4")),
                    text("storage_data") + "}(" + times(size / 600, index + stored_at("p")) + "u");
       }},
      {"one state of many objects",
       [](std::size_t size) {
         return kept("}(" + times(size / 8, "NN") + "u", '\2') +
                kept(global(kDcp, "BytesStorageMetadata"), '\3') +
                metadata(each(size / 24, [](std::size_t i) {
                  return text(std::to_string(i)) + "h\3)\x81h\2b";
                }));
       }},
      {"one long path of many keys",
       [](std::size_t size) {
         return kept("(" + times(size / 8, "K\1") + "t", '\2') +
                metadata("", text("planner_data") + "}(" + each(size / 24, [](std::size_t i) {
                               return text(std::to_string(i)) + "h\2";
                             }) + "u");
       }},
      {"a place of very many parts",
       [](std::size_t size) {
         return metadata("", text("storage_meta") +
                                 made(kDcp, "StorageMeta",
                                      text("checkpoint_id") + global("pathlib", "PosixPath") + "(" +
                                          times(size / 8, text("aaa")) + "tR"));
       }},
  };
}

TEST(Costs, metadata_and_what_verify_says_of_it) {
  expect_each_bounded(metadata_shapes(), kSizes, [](const std::string& body) {
    const Bytes bytes = pickle(body);
    const std::vector<ByteSpan> files{bytes};
    const std::vector<std::string> names{".metadata"};
    const Metadata read = read_metadata(files, names);
    (void)write_metadata(read);
    (void)check_cover(read.catalog);
    (void)check_grids(read.catalog);
    (void)check_modules(modules_of(read.catalog));
  });
}

// --- archives, JSON, YAML ------------------------------------------------------------------------

std::string archive_of(std::size_t records, const std::function<std::string(std::size_t)>& name,
                       ByteSpan content) {
  ArchiveWriter writer("archive");
  writer.add("data.pkl", pickle("N"));
  for (std::size_t i = 0; i < records; ++i) writer.add(name(i), content);
  writer.add("version", as_bytes("3\n"));
  writer.finish();
  return std::string(as_text(writer.take()));
}

TEST(Costs, archives_of_many_records) {
  const std::vector<Shape> shapes = {
      {"records",
       [](std::size_t size) {
         return archive_of(
             std::min<std::size_t>(size / 256, 4000),
             [](std::size_t i) { return "data/" + std::to_string(i); }, Bytes(8));
       }},
      {"names that begin alike",
       [](std::size_t size) {
         return archive_of(
             std::min<std::size_t>(size / 2200, 4000),
             [](std::size_t i) { return "data/" + std::string(900, 'x') + std::to_string(i); }, {});
       }},
      {"storages of many tensors",
       [](std::size_t size) {
         const std::size_t count = std::min<std::size_t>(size / 400, 4000);
         const auto one = [](std::size_t i) {
           return "h\5((" + text("storage") + "h\1" + text(std::to_string(i)) + text("cpu") +
                  "K\1tQK\0))\x89h\7tR"s;
         };
         ArchiveWriter writer("archive");
         writer.add("data.pkl", pickle(kept(global("torch._utils", "_rebuild_tensor_v2"), '\5') +
                                       kept(global("torch", "FloatStorage"), '\1') +
                                       kept(global("collections", "OrderedDict") + ")R", '\7') +
                                       "](" + each(count, one) + "e"));
         for (std::size_t i = 0; i < count; ++i) writer.add("data/" + std::to_string(i), Bytes(4));
         writer.add("version", as_bytes("3\n"));
         writer.finish();
         return std::string(as_text(writer.take()));
       }},
  };
  expect_each_bounded(shapes, kSizes,
                      [](const std::string& item) { (void)read_bytes_item(as_bytes(item)); });
}

std::vector<Shape> documents() {
  const auto list = [](const std::string& item) {
    return [item](std::size_t size) {
      return R"({"a":[)" + times(size / (item.size() + 1), item + ",") + "0]}\n";
    };
  };
  return {
      {"objects", list("{}")},
      {"lists", list("[]")},
      {"objects of a list", list(R"({"b":[]})")},
      {"objects of many fields", list(R"({"b":1,"c":2,"d":3,"e":4})")},
      {"objects in objects", list(R"({"b":{"b":{"b":{"b":{"b":{}}}}}})")},
      {"texts", list("\"\\u0041\"")},
      {"objects of objects",
       [](std::size_t size) {
         return "{" +
                each(size / 12, [](std::size_t i) { return "\"" + std::to_string(i) + "\":{},"; }) +
                R"("a":0})" + "\n";
       }},
      {"fields that begin alike",
       [](std::size_t size) {
         return "{" +
                each(size / 1000,
                     [](std::size_t i) {
                       return "\"" + std::string(980, 'k') + std::to_string(i) + "\":0,";
                     }) +
                R"("a":0})" + "\n";
       }},
      {"brackets", [](std::size_t size) { return R"({"a":)" + times(size, "["); }},
      {"brackets that are closed",
       [](std::size_t size) {
         return R"({"a":)" + times(size / 2, "[") + times(size / 2, "]") + "}\n";
       }},
  };
}

TEST(Costs, documents_of_json) {
  expect_each_bounded(documents(), kSizes, [](const std::string& text) {
    parse_json_object(as_bytes(text), {}, std::uint64_t{1} << 30U);
  });
}

TEST(Costs, documents_of_reports) {
  expect_each_bounded(documents(), kSizes, [](const std::string& text) {
    (void)reports::parse_baseline(text, "baseline.json");
  });
}

/// The sizes are small because a scenario file may have at most 64 KiB.
TEST(Costs, texts_of_yaml) {
  const auto list = [](const std::string& begin, const std::string& item, const std::string& end) {
    return [=](std::size_t size) { return begin + times(size / item.size(), item) + end; };
  };
  const std::vector<Shape> shapes = {
      {"brackets", list("", "[", "")},
      {"brackets that are closed",
       [](std::size_t size) { return "a: " + times(size / 2, "[") + times(size / 2, "]"); }},
      {"braces", list("", "{a: ", "")},
      {"dashes", list("", "- ", "")},
      {"keys of keys", list("", "? ", "")},
      {"anchors",
       [](std::size_t size) {
         return each(size / 10, [](std::size_t i) { return "- &a" + std::to_string(i) + "\n"; });
       }},
      {"keys",
       [](std::size_t size) {
         return each(size / 10, [](std::size_t i) { return "k" + std::to_string(i) + ": 1\n"; });
       }},
      {"one key again and again", list("", "k: 1\n", "")},
      {"one list again and again",
       [](std::size_t size) {
         return "a: &a [" + times(size / 6, "1, ") + "1]\nb: [" + times(size / 8, "*a, ") + "*a]\n";
       }},
      {"one mapping as the steps of a life",
       [](std::size_t size) {
         return "job: {a: &a {" +
                each(size / 20, [](std::size_t i) { return std::to_string(i) + ": 1, "; }) +
                "z: 1}}\nsteps: [" + times(size / 8, "*a, ") + "*a]\n";
       }},
      {"lists doubled",
       [](std::size_t size) {
         std::string text = "a0: &a0 [1, 1]\n";
         for (std::size_t i = 1; text.size() < size; ++i) {
           const std::string before = std::to_string(i - 1);
           text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + before + ", *a" +
                   before + "]\n";
         }
         return text;
       }},
      {"one list that holds itself", list("&a [", "*a, ", "*a]")},
      {"one long text", list("name: ", "x", "")},
      {"many lines of one text", list("name: |\n", "  x\n", "")},
      {"a text of escapes", list("name: \"", "\\n", "\"")},
      {"comments", list("", "# x\n", "")},
      {"documents", list("", "---\n", "")},
      {"tags", list("", "!a ", "")},
      {"key without a value", list("", "a\n", "")},
  };
  expect_each_bounded(shapes, {kSmall / 4, kSmall}, [](const std::string& text) {
    try {
      (void)driver::parse_model(text, "model.yaml");
    } catch (const std::exception&) {  // ignored: parse_scenarios below throws for the same reason
    }
    (void)driver::parse_scenarios(text, "scenario.yaml");
  });
}

}  // namespace
}  // namespace reprise::test::costs_test
