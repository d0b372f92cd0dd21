#include "properties/ruling.hpp"

namespace reprise {

std::ostream& operator<<(std::ostream& out, const Ruling& ruling) {
  out << name_of(ruling.code) << ": " << ruling.message;
  if (!ruling.rank && ruling.key.empty()) return out;
  out << " [";
  if (ruling.rank) out << "rank " << *ruling.rank << (ruling.key.empty() ? "" : ", ");
  if (!ruling.key.empty()) out << "key " << ruling.key;
  return out << ']';
}

}  // namespace reprise
