#include "core/api/agreed_options.hpp"

#include <cstddef>
#include <string_view>

#include "core/agree/agreement.hpp"
#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

/// Splits the message of one rank into the values of its options, each of which ends in a zero
/// byte. Every rank sends the same options in the same order.
std::vector<std::string> values_of(const Bytes& wire, std::size_t count) {
  std::vector<std::string> values;
  std::string_view text = as_text(wire);
  for (std::size_t i = 0; i < count && !text.empty(); ++i) {
    const auto end = text.find('\0');
    values.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  values.resize(count);
  return values;
}

}  // namespace

void agree_on_options(Communicator& group, const std::function<std::vector<NamedOption>()>& named) {
  std::vector<NamedOption> own;
  const auto all = agree_on(group, [&] {
    own = named();
    Bytes wire;
    for (const NamedOption& option : own) {
      append(wire, as_bytes(option.value));
      wire.push_back(std::byte{0});
    }
    return wire;
  });
  const auto first = values_of(all.front(), own.size());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all.front()) continue;
    const auto other = values_of(all[rank], own.size());
    std::size_t at = 0;
    while (at + 1 < own.size() && first[at] == other[at]) ++at;
    throw Error(Code::kUsage, "option '" + own[at].name + "' is '" + first[at] +
                                  "' on the first rank and '" + other[at] + "' on rank " +
                                  std::to_string(rank) + "; all ranks must pass the same options");
  }
}

}  // namespace reprise
