#include "driver/trace/proto_writer.hpp"

namespace reprise::driver {
namespace {

constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kFixed64 = 1;
constexpr std::uint64_t kLengthDelimited = 2;

std::uint64_t tag_of(ProtoWriter::Field field, std::uint64_t wire_type) {
  return (std::uint64_t{field} << 3U) | wire_type;
}

}  // namespace

void ProtoWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>((value & 0x7FU) | 0x80U);
  bytes_ += static_cast<char>(value);
}

ProtoWriter& ProtoWriter::number(Field field, std::uint64_t value) {
  varint(tag_of(field, kVarint));
  varint(value);
  return *this;
}

ProtoWriter& ProtoWriter::fixed64(Field field, std::uint64_t value) {
  varint(tag_of(field, kFixed64));
  for (int byte = 0; byte < 8; ++byte, value >>= 8U) bytes_ += static_cast<char>(value & 0xFFU);
  return *this;
}

ProtoWriter& ProtoWriter::text(Field field, std::string_view value) {
  varint(tag_of(field, kLengthDelimited));
  varint(value.size());
  bytes_ += value;
  return *this;
}

ProtoWriter& ProtoWriter::message(Field field, const ProtoWriter& value) {
  return text(field, value.bytes());
}

}  // namespace reprise::driver
