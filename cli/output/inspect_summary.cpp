#include "cli/output/inspect_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/describe.hpp"
#include "cli/output/release_text.hpp"
#include "core/base/print.hpp"
#include "core/base/printable.hpp"

namespace reprise::cli {
namespace {

class Lines {
 public:
  explicit Lines(const Console& console) : console_(console) {}

  void add(std::string_view what, const std::string& value) const {
    if (!value.empty()) console_.out << fmt::format("{:<10}{}\n", what, value);
  }

 private:
  const Console& console_;
};

std::string text_of(const Value& value) {
  std::ostringstream text;
  text << value;
  return printable(text.str());
}

void print_place(Checkpoint& checkpoint, const CheckpointSummary& summary, const Lines& lines) {
  const Metadata& metadata = checkpoint.metadata();
  lines.add("where", checkpoint.store().display(checkpoint.location().path()));
  lines.add("step", describe_iteration(summary.iteration));
  lines.add("kind", describe_kind(checkpoint) +
                        (metadata.version.empty() ? "" : ", metadata " + metadata.version));
  lines.add("saved as", metadata.checkpoint_id);
}

void print_layout(const CheckpointSummary& summary, const Lines& lines) {
  std::vector<std::string> words;
  for (const auto& [name, size] : summary.layout)
    words.push_back(name + " " + std::to_string(size));
  std::string text = join(words, ", ");
  const auto add = [&text](const std::string& more) {
    if (!more.empty()) text += (text.empty() ? "" : "; ") + more;
  };
  add(summary.random_grid.empty() ? "" : "random states on " + summary.random_grid);
  add(summary.writers == 0 ? "" : "written by " + counted(summary.writers, "rank"));
  lines.add("layout", text);
}

/// Prints one line for each use of tensors, with the amounts of each type.
void print_amounts(const CheckpointSummary& summary, const Lines& lines) {
  for (const TensorUse use : {TensorUse::kWeights, TensorUse::kOptimizer, TensorUse::kOther}) {
    std::uint64_t tensors = 0;
    std::uint64_t elements = 0;
    std::vector<std::string> types;
    for (const Amount& amount : summary.amounts) {
      if (amount.use != use) continue;
      tensors += amount.tensors;
      elements += amount.elements;
      types.push_back(human_bytes(amount.bytes) + " " + std::string(name_of(amount.dtype)));
    }
    if (tensors == 0) continue;
    lines.add(name_of(use),
              fmt::format("{} in {}: {}",
                          counted(elements, use == TensorUse::kWeights ? "parameter" : "element"),
                          counted(tensors, "tensor"), join(types, ", ")));
  }
}

void print_stored(Checkpoint& checkpoint, const Lines& lines) {
  const Catalog& catalog = checkpoint.catalog();
  std::uint64_t elements = 0;
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  for (const StoredTensor& tensor : catalog.tensors) {
    elements += elements_of(tensor);
    chunks += tensor.chunks.size();
    for (const StoredChunk& chunk : tensor.chunks) bytes += chunk.range.size;
  }
  for (const StoredObject& object : catalog.objects) bytes += object.range.size;
  lines.add("files", fmt::format("{}, {}", catalog.files.size(), human_bytes(bytes)));
  lines.add("tensors", fmt::format("{}, {} in {}", with_commas(catalog.tensors.size()),
                                   counted(elements, "element"), counted(chunks, "chunk")));
  lines.add("objects", with_commas(catalog.objects.size()));
}

void print_optimizer(const CheckpointSummary& summary, const Lines& lines) {
  const OptimizerSummary& optimizer = summary.optimizer;
  std::string text = optimizer.kind;
  if (!summary.optimizer_argument.empty()) {
    text += (text.empty() ? "" : "; ") + ("args says " + printable(summary.optimizer_argument));
  }
  if (!optimizer.slots.empty()) {
    text += (text.empty() ? "" : "; ") + ("keeps " + join(optimizer.slots, ", "));
  }
  lines.add("by", text);
  for (const ParamGroups& group : optimizer.groups) {
    std::vector<std::string> settings;
    for (const auto& [name, value] : group.settings)
      settings.push_back(name + " " + text_of(value));
    lines.add("rates", counted(group.count, "param group") + ": " + join(settings, ", "));
  }
}

void print_common(Checkpoint& checkpoint, const Lines& lines) {
  const auto common = checkpoint.common();
  lines.add("common",
            common ? common->source
            : checkpoint.lost_common()
                ? "missing: there is a metadata.json, which Megatron writes, but no common state"
                : "none");
  if (common && common->item.value) lines.add("run", describe_run(*common->item.value));
}

void print_releases(Checkpoint& checkpoint, const Lines& lines) {
  const ReleasesOf releases = releases_of(checkpoint);
  lines.add("writer", release_text(releases.writers));
  lines.add("readers", release_text(releases.readers));
  lines.add("", advice_of(releases));
}

void print_values(const CheckpointSummary& summary, std::size_t most, const Lines& lines) {
  const auto& values = summary.values;
  const std::size_t shown = most == 0 ? values.size() : std::min(most, values.size());
  for (std::size_t i = 0; i < shown; ++i) {
    lines.add("value", printable(values[i].first) + ": " + text_of(values[i].second));
  }
  if (shown < values.size()) {
    lines.add("value", fmt::format("... {} more; --limit 0 lists them", values.size() - shown));
  }
  if (summary.not_read != 0) {
    lines.add("value", counted(summary.not_read, "small object") + " more were not read");
  }
}

void print_notes(const Metadata& metadata, const Lines& lines) {
  for (const auto& note : metadata.notes) lines.add("note", note);
  for (const Finding& finding : metadata.findings) {
    if (finding.severity != Severity::kError) lines.add("note", finding.message);
  }
}

}  // namespace

std::string describe_iteration(const StoredIteration& iteration) {
  if (!iteration.of_name && !iteration.of_state) return "";
  if (!iteration.of_state) return std::to_string(*iteration.of_name);
  const std::string stored = "by the stored value '" + printable(iteration.state_key) + "'";
  if (!iteration.of_name) return std::to_string(*iteration.of_state) + " " + stored;
  if (iteration.agree()) return std::to_string(*iteration.of_name) + ", also " + stored;
  return std::to_string(*iteration.of_name) + " by the directory's name, but " +
         std::to_string(*iteration.of_state) + " " + stored;
}

void print_summary(Checkpoint& checkpoint, const CheckpointSummary& summary, std::size_t values,
                   const Console& console) {
  const Lines lines(console);
  print_place(checkpoint, summary, lines);
  print_layout(summary, lines);
  print_stored(checkpoint, lines);
  print_amounts(summary, lines);
  print_optimizer(summary, lines);
  print_common(checkpoint, lines);
  print_releases(checkpoint, lines);
  print_values(summary, values, lines);
  print_notes(checkpoint.metadata(), lines);
}

}  // namespace reprise::cli
