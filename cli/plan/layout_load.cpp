#include "cli/plan/layout_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/output/table.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/base/print.hpp"

namespace reprise::cli {
namespace {

using Json = nlohmann::json;

}  // namespace

LayoutLoad::LayoutLoad(Checkpoint& checkpoint, const std::string& layout, const LayoutView& view)
    : catalog_(checkpoint.catalog()), view_(view) {
  PosixClock clock;
  const std::uint64_t start = clock.now_ns();
  layout_ = layout_of_checkpoint(layout, checkpoint);
  if (view_.rank && *view_.rank >= layout_.layout.world_size()) {
    throw Error(Code::kUsage,
                "there is no rank " + std::to_string(*view_.rank) + ": the layout " +
                    sim::to_string(layout_.layout) + " has " +
                    counted(static_cast<std::uint64_t>(layout_.layout.world_size()), "rank"));
  }
  reads_ = layout_reads(catalog_, *layout_.boxes, layout_.places_alone());
  seconds_ = static_cast<double>(clock.now_ns() - start) * 1e-9;
}

PlanOutcome LayoutLoad::outcome() const {
  PlanOutcome outcome;
  outcome.seconds = seconds_;
  outcome.bytes.resize(static_cast<std::size_t>(layout_.layout.world_size()));
  for (std::size_t p = 0; p < reads_.size(); ++p) {
    outcome.items += reads_[p].chunks * layout_.places[p].ranks.size();
    for (const std::int32_t rank : layout_.places[p].ranks) {
      outcome.bytes[static_cast<std::size_t>(rank)] = reads_[p].held;
    }
  }
  return outcome;
}

double LayoutLoad::amplification() const { return read_amplification(reads_, layout_.counts()); }

std::vector<std::string> LayoutLoad::notes() const { return layout_.notes(); }

bool LayoutLoad::wants(const RanksAtPlace& at) const {
  return !view_.rank || std::ranges::count(at.ranks, static_cast<std::int32_t>(*view_.rank)) != 0;
}

std::uint64_t LayoutLoad::most_peak() const {
  std::uint64_t most = 0;
  for (const PlaceReads& reads : reads_) most = std::max(most, reads.peak());
  return most;
}

void LayoutLoad::print(const Console& console) const {
  console.out << fmt::format(
      "torch reads whole chunks, which have {:.2f} times the bytes that the ranks ask for (read "
      "amplification)\n",
      amplification());
  if (view_.memory) print_memory(console);
  if (view_.files) print_files(console);
}

void LayoutLoad::print_memory(const Console& console) const {
  Table table({{"ranks"},
               {"holds", Align::kRight},
               {"two largest reads", Align::kRight},
               {"peak", Align::kRight}});
  for (std::size_t p = 0; p < reads_.size(); ++p) {
    if (!wants(layout_.places[p])) continue;
    const PlaceReads& reads = reads_[p];
    table.add({ranks_text(layout_.places[p].ranks), human_bytes(reads.held),
               human_bytes(reads.largest + reads.second), human_bytes(reads.peak())});
  }
  console.out << '\n';
  table.print(console);
  if (view_.host_memory == 0 || most_peak() == 0) return;
  console.out << fmt::format("{} fit into {} at the same time, as the largest peak is {}\n",
                             counted(view_.host_memory / most_peak(), "reader"),
                             human_bytes(view_.host_memory), human_bytes(most_peak()));
}

void LayoutLoad::print_files(const Console& console) const {
  Table table({{"ranks"}, {"file"}, {"bytes", Align::kRight}});
  for (std::size_t p = 0; p < reads_.size(); ++p) {
    if (!wants(layout_.places[p])) continue;
    for (const auto& [file, bytes] : reads_[p].of_file) {
      table.add({ranks_text(layout_.places[p].ranks), catalog_.files[file], with_commas(bytes)});
    }
  }
  console.out << '\n';
  if (table.empty()) {
    console.out << "no file is read\n";
  } else {
    table.print(console);
  }
}

void LayoutLoad::add_to(Json& document) const {
  document["layout"] = sim::to_string(layout_.layout);
  document["amplification"] = amplification();
  document["left_out"] = layout_.boxes->unfit();
  document["untold"] = layout_.boxes->untold();
  Json ranks = Json::array();
  for (std::size_t p = 0; p < reads_.size(); ++p) {
    if (!wants(layout_.places[p])) continue;
    const PlaceReads& reads = reads_[p];
    Json files = Json::object();
    for (const auto& [file, bytes] : reads.of_file) files[catalog_.files[file]] = bytes;
    ranks.push_back({{"ranks", layout_.places[p].ranks},
                     {"held", reads.held},
                     {"read", reads.read},
                     {"two_largest_reads", reads.largest + reads.second},
                     {"peak", reads.peak()},
                     {"reads", reads.chunks},
                     {"files", files}});
  }
  document["ranks"] = ranks;
  if (view_.host_memory != 0 && most_peak() != 0) {
    document["host_memory"] = view_.host_memory;
    document["readers"] = view_.host_memory / most_peak();
  }
}

}  // namespace reprise::cli
