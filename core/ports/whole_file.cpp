#include "core/ports/whole_file.hpp"

#include "core/base/out_of_memory.hpp"
#include "core/base/print.hpp"
#include "core/ports/store_path.hpp"
#include "reprise/error.hpp"

namespace reprise {

bool is_another_file(const Entry& one, const Entry& other) {
  if (!one.identity || !other.identity || *one.identity == *other.identity) return false;
  const bool same_look = one.modified_ns && one.modified_ns == other.modified_ns;
  return !(same_look && one.size == other.size);
}

Bytes read_whole(ReadFile& file, const std::string& name) {
  return taken_in(name, file.size(), [&file] {
    Bytes content(file.size());
    file.read_at(0, content);
    return content;
  });
}

Bytes read_all(Store& store, const std::string& path, std::uint64_t size_max) {
  const auto file = store.open(path);
  if (file->size() > size_max) {
    throw Error(Code::kLimit,
                "the file has " + human_bytes(file->size()) + ", more than the " +
                    human_bytes(size_max) + " that such a file may have",
                {.file = store.display(path)});
  }
  return read_whole(*file, store.display(path));
}

void write_durably(Store& store, const std::string& path, ByteSpan content) {
  const auto file = store.create(path);
  file->write_at(0, content);
  file->sync();
  file->close();
}

void write_atomically(Store& store, const std::string& path, ByteSpan content) {
  const std::string beside = path + ".tmp";
  write_durably(store, beside, content);
  store.publish({beside, path});
  store.sync_directory(parent_path(path));
}

}  // namespace reprise
