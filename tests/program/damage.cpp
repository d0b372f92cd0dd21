#include "tests/program/damage.hpp"

#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "core/adapters/posix/posix_store.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/ports/whole_file.hpp"

namespace reprise::test {

std::string data(const std::string& name) { return std::string(REPRISE_TEST_DATA) + "/" + name; }

Victim::Victim(const std::string& fixture) : path_(directory_.path()) {
  path_ /= "ckpt";
  std::filesystem::copy(std::filesystem::path(REPRISE_TEST_DATA) / fixture, path_,
                        std::filesystem::copy_options::recursive);
}

void Victim::truncate(const std::string& name, std::uint64_t size) const {
  std::filesystem::resize_file(file(name), size);
}

void Victim::flip(const std::string& name, std::int64_t offset) const {
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(file(name)));
  const std::int64_t at = offset < 0 ? size + offset : offset;
  std::fstream stream(file(name), std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(at);
  const int byte = stream.get();
  stream.seekp(at);
  stream.put(static_cast<char>(byte ^ 0x10));
}

void Victim::write(const std::string& name, std::string_view content) const {
  std::ofstream(file(name), std::ios::binary) << content;
}

void Victim::remove(const std::string& name) const { std::filesystem::remove(file(name)); }

std::int64_t Victim::offset_of(const std::string& name, std::string_view text) const {
  std::ifstream stream(file(name), std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t at = content.find(text);
  if (at == std::string::npos) throw std::out_of_range(std::string(text));
  return static_cast<std::int64_t>(at);
}

void Victim::zero_object_in(const std::string& file) const {
  PosixStore store(directory_.path());
  const Checkpoint checkpoint = Checkpoint::open(store, "ckpt");
  for (const auto& object : checkpoint.catalog().objects) {
    if (checkpoint.catalog().files[object.file] != file) continue;
    std::fstream stream(this->file(file), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(object.range.offset));
    for (std::uint64_t i = 0; i < object.range.size; ++i) stream.put('\0');
    return;
  }
  throw std::out_of_range(file);
}

void Victim::edit_metadata(const std::function<void(Metadata&)>& change) const {
  PosixStore store(path());
  const Bytes bytes = read_all(store, ".metadata", std::uint64_t{1} << 30U);
  const std::array<ByteSpan, 1> files = {bytes};
  const std::array<std::string, 1> names = {".metadata"};
  Metadata metadata = read_metadata(files, names);
  change(metadata);
  write(".metadata", as_text(write_metadata(metadata)));
}

Victim::Elements Victim::elements_of(const std::string& key) const {
  PosixStore store(directory_.path());
  Checkpoint checkpoint = Checkpoint::open(store, "ckpt");
  const StoredTensor& tensor = *checkpoint.catalog().tensor(key);
  const StoredChunk& chunk = tensor.chunks.at(0);
  const auto item = checkpoint.tensor_item(tensor, chunk);
  return {checkpoint.catalog().files[chunk.file],
          static_cast<std::int64_t>(chunk.range.offset + item.data_offset)};
}

}  // namespace reprise::test
