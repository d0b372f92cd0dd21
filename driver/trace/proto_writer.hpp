#pragma once
// Writes one protobuf message. Each field is a tag, which is its number and a wire type, and then
// its value (https://protobuf.dev/programming-guides/encoding):
//
//   wire type 0   varint: seven bits in each byte, the lowest first; bit 7 says that more follow
//   wire type 1   eight bytes, little-endian
//   wire type 2   a length as varint, and that many bytes: a text or a message

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::driver {

class ProtoWriter {
 public:
  using Field = std::uint32_t;

  ProtoWriter& number(Field field, std::uint64_t value);
  ProtoWriter& fixed64(Field field, std::uint64_t value);
  ProtoWriter& text(Field field, std::string_view value);
  ProtoWriter& message(Field field, const ProtoWriter& value);

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);

  std::string bytes_;
};

}  // namespace reprise::driver
