#include "reports/exhaustive.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/print.hpp"
#include "reports/evidence.hpp"

namespace reprise::reports {
namespace {

constexpr std::uint64_t kPartsMax = 10'000;
constexpr std::uint64_t kLayoutsMax = 1'000'000;

std::string of_pairs(std::uint64_t count, std::uint64_t all) {
  return with_commas(count) + " of " + with_commas(all) + " pairs";
}

std::uint64_t refused_in(const ExhaustivePart& part) {
  std::uint64_t refused = 0;
  for (const auto& [code, pairs] : part.refused) refused = saturating_sum(refused, pairs);
  return refused;
}

/// Returns what is wrong with the part; empty if all its pairs passed.
std::string flaw_in(const ExhaustivePart& part) {
  const std::uint64_t most = std::max(
      {part.pairs, part.passed, part.wrong, refused_in(part), part.elements, part.objects});
  if (most > kCountMax) return "it counts " + std::to_string(most) + ", which no run does";
  if (part.wrong > 0) {
    return std::to_string(part.wrong) + " pairs are wrong, first " + part.first_wrong;
  }
  if (part.passed != part.pairs) return of_pairs(part.passed, part.pairs) + " passed";
  const std::uint64_t refused = refused_in(part);
  if (refused > part.passed) return of_pairs(refused, part.passed) + " refused";
  if (refused < part.passed && part.elements == 0) return "no element was compared";
  if (!part.first_wrong.empty()) return "no pair is wrong, but one is named: " + part.first_wrong;
  if (!std::isfinite(part.seconds) || part.seconds < 0) return "no run takes that many seconds";
  return "";
}

}  // namespace

std::uint64_t Exhaustive::passed() const {
  std::uint64_t sum = 0;
  for (const auto& part : parts) sum = saturating_sum(sum, part.passed);
  return sum;
}

std::string Exhaustive::space() const { return sharding + (hsdp ? " hsdp" : ""); }

std::vector<std::string> flaws_of(const Exhaustive& exhaustive) {
  std::vector<std::string> flaws;
  std::uint64_t pairs = 0;
  std::uint64_t next = 1;
  std::uint64_t elements = 0;
  if (exhaustive.of > kPartsMax || exhaustive.layouts > kLayoutsMax) {
    return {"no run has " + std::to_string(exhaustive.of) + " parts of " +
            std::to_string(exhaustive.layouts) + " layouts"};
  }
  for (const auto& part : exhaustive.parts) {
    if (part.part > exhaustive.of) {
      return {"there are more than " + std::to_string(exhaustive.of) + " parts"};
    }
    for (; next < part.part; ++next)
      flaws.push_back("part " + std::to_string(next) + " is missing");
    if (part.part != next) flaws.push_back("part " + std::to_string(part.part) + " occurs twice");
    next = std::max(next, part.part + 1);
    pairs = saturating_sum(pairs, part.pairs);
    elements = std::max(elements, part.elements);
    const std::string flaw = flaw_in(part);
    if (!flaw.empty()) flaws.push_back("part " + std::to_string(part.part) + ": " + flaw);
  }
  if (next <= exhaustive.of) {
    flaws.push_back("parts from " + std::to_string(next) + " to " + std::to_string(exhaustive.of) +
                    " are missing");
  } else if (pairs != exhaustive.pairs) {
    flaws.push_back("the parts have " + of_pairs(pairs, exhaustive.pairs));
  }
  if (elements == 0) flaws.emplace_back("no element of any pair was compared");
  if (exhaustive.layouts == 0 || exhaustive.pairs != exhaustive.layouts * exhaustive.layouts) {
    flaws.push_back(std::to_string(exhaustive.layouts) + " layouts do not make " +
                    std::to_string(exhaustive.pairs) + " pairs");
  }
  return flaws;
}

bool is_wrong(const Exhaustive& exhaustive) {
  return std::any_of(exhaustive.parts.begin(), exhaustive.parts.end(),
                     [](const ExhaustivePart& part) { return part.wrong > 0; });
}

bool same_work(const Exhaustive& exhaustive, const Exhaustive& other) {
  return exhaustive.model == other.model && exhaustive.space() == other.space() &&
         exhaustive.max_world == other.max_world && exhaustive.of == other.of;
}

void put_part(Exhaustive& exhaustive, const ExhaustivePart& part) {
  auto& parts = exhaustive.parts;
  const auto at = std::find_if(parts.begin(), parts.end(), [&part](const ExhaustivePart& other) {
    return other.part >= part.part;
  });
  if (at != parts.end() && at->part == part.part) {
    *at = part;
  } else {
    parts.insert(at, part);
  }
}

void put_work(std::vector<Exhaustive>& all, const Exhaustive& work) {
  const auto at = std::find_if(all.begin(), all.end(), [&work](const Exhaustive& other) {
    return other.space() == work.space();
  });
  if (at == all.end()) {
    all.push_back(work);
  } else if (same_work(*at, work)) {
    for (const auto& part : work.parts) put_part(*at, part);
  } else {
    *at = work;
  }
}

}  // namespace reprise::reports
