#pragma once
// Collects the offers of all ranks, by key.

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "core/plan/save_plan.hpp"

namespace reprise {

/// Ranks that share one PlacedOffers object.
struct Section {
  const PlacedOffers* offers;
  std::vector<GroupRank> ranks;  ///< ascending
  /// For each placement of the section, its index in OfferBook::placements().
  std::vector<std::uint32_t> placement;
};

/// The offer of one key by the ranks of one section.
struct SectionOffer {
  std::uint32_t section;
  std::uint32_t placement;  ///< index into OfferBook::placements()
  const PlacedOffer* offer;
};

/// Ranks that share one list of forms.
struct FormSection {
  const std::vector<TensorForm>* forms;
  std::vector<GroupRank> ranks;  ///< ascending
};

/// The given offers of one key by the ranks of one form section.
struct FormOffer {
  std::uint32_t section;  ///< index into OfferBook::form_sections()
  std::uint32_t index;    ///< index into GivenOffers
};

/// The offers of all ranks. The plans must outlive this object. Equal placements in different
/// sections share one index.
class OfferBook {
 public:
  explicit OfferBook(std::span<const LocalPlan> plans);

  /// Returns the keys in sorted order.
  std::span<const std::string_view> keys() const { return keys_; }
  /// Returns the placed offers of keys()[key], ordered by section.
  std::span<const SectionOffer> placed(std::size_t key) const { return placed_.of(key); }
  std::span<const FormOffer> given(std::size_t key) const { return given_.of(key); }

  const std::vector<Section>& sections() const { return sections_; }
  const std::vector<FormSection>& form_sections() const { return form_sections_; }
  const std::vector<const Placed*>& placements() const { return placements_; }

 private:
  /// One list for each key. The lists are stored back to back in one array.
  template <class T>
  struct Lists {
    std::vector<std::size_t> first;
    std::vector<T> all;

    std::span<const T> of(std::size_t key) const {
      return std::span(all).subspan(first[key], first[key + 1] - first[key]);
    }
    /// Sorts the entries by key. ids[i] is the number of the key to which entry i belongs. Entries
    /// of one key keep their order.
    void sort(std::size_t keys, std::span<const std::uint32_t> ids);
  };

  void find_sections(std::span<const LocalPlan> plans);
  std::uint32_t index_of(const Placed& placed);
  /// Fills the lists of placed and given offers, in the order of the offers.
  void collect(std::vector<std::uint32_t>& placed_keys, std::vector<std::uint32_t>& given_keys);
  /// Sorts the keys. Returns the new position of each old number.
  std::vector<std::uint32_t> sort_keys();

  std::vector<Section> sections_;
  std::vector<FormSection> form_sections_;
  std::vector<const Placed*> placements_;
  /// Indices of placements by signature; used for lookups only.
  std::multimap<std::uint64_t, std::uint32_t> by_signature_;
  std::vector<std::string_view> keys_;
  Lists<SectionOffer> placed_;
  Lists<FormOffer> given_;
};

}  // namespace reprise
