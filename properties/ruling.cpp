#include "properties/ruling.hpp"

#include <utility>

#include "properties/ruling_watch.hpp"

namespace reprise {

Rulings::Rulings(std::initializer_list<Ruling> found, const char* file) {
  for (const Ruling& ruling : found) push_back(ruling, file);
}

void Rulings::push_back(Ruling ruling, const char* file) {
  if (may_state(file, ruling.code)) found_.push_back(std::move(ruling));
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
