#include "properties/ruling.hpp"

#include <utility>

namespace reprise {

Rulings::Rulings(std::initializer_list<Ruling> found) {
  for (const Ruling& ruling : found) push_back(ruling);
}

void Rulings::push_back(Ruling ruling) {
  if (may_state(ruling.line, ruling.code)) found_.push_back(std::move(ruling));
}

void Rulings::append(const Rulings& others) {
  found_.insert(found_.end(), others.begin(), others.end());
}

std::ostream& operator<<(std::ostream& out, const Ruling& ruling) {
  out << name_of(ruling.code) << ": " << ruling.message;
  if (!ruling.rank && ruling.key.empty()) return out;
  out << " [";
  if (ruling.rank) out << "rank " << *ruling.rank << (ruling.key.empty() ? "" : ", ");
  if (!ruling.key.empty()) out << "key " << ruling.key;
  return out << ']';
}

}  // namespace reprise
