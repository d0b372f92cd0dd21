#include "core/verify/verify_health.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/print.hpp"
#include "core/checkpoint/batches.hpp"
#include "core/checkpoint/checkpoint_copies.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/geometry/dtype.hpp"
#include "core/geometry/element_values.hpp"
#include "core/megatron/parameter_role.hpp"

namespace reprise {

std::string number_text(double value) {
  std::array<char, 32> text{};
  const int size = std::snprintf(text.data(), text.size(), "%.6g", value);
  return {text.data(), static_cast<std::size_t>(size)};
}

namespace {

constexpr std::size_t kReadBytes = std::size_t{4} << 20U;
/// Fewer numbers may be alike by chance, and tensors of one dimension by their nature: biases and
/// norms begin with one value.
constexpr std::uint64_t kJudgedMin = 64;
constexpr std::uint64_t kDenormalShare = 100;  // one in so many is unusual
bool is_weight(const StoredTensor& tensor) {
  return role_of(name_of(tensor), logical_shape(tensor)).kind == ParameterRole::Kind::kWeight;
}

std::string share_text(std::uint64_t count, std::uint64_t numbers) {
  return with_commas(count) + " of " + counted(numbers, "number");
}

Findings beyond_limits(const StoredTensor& tensor, const ElementStats& stats,
                       const HealthLimits& limits) {
  Findings findings;
  const auto refuse = [&](const std::string& message) {
    findings.push_back({Severity::kError, Code::kLoadRejected, message, tensor.key});
  };
  const auto numbers = static_cast<double>(stats.numbers);
  if (stats.nan > limits.nan) {
    refuse(share_text(stats.nan, stats.numbers) + (stats.nan == 1 ? " is NaN" : " are NaN"));
  }
  if (stats.infinite > limits.infinite) {
    refuse(share_text(stats.infinite, stats.numbers) +
           (stats.infinite == 1 ? " is infinite" : " are infinite"));
  }
  if (limits.zeros && static_cast<double>(stats.zero) > *limits.zeros * numbers) {
    refuse(share_text(stats.zero, stats.numbers) + " are zero");
  }
  if (limits.denormals && static_cast<double>(stats.denormal) > *limits.denormals * numbers) {
    refuse(share_text(stats.denormal, stats.numbers) + " are denormal");
  }
  if (limits.absolute && stats.absolute() > *limits.absolute) {
    refuse("the largest absolute value is " + number_text(stats.absolute()));
  }
  return findings;
}

Findings unusual(const StoredTensor& tensor, const ElementStats& stats,
                 const HealthLimits& limits) {
  if (stats.numbers < kJudgedMin || !is_weight(tensor)) return {};
  const auto warn = [&tensor](const std::string& message) {
    return Findings{{Severity::kWarning, Code::kLoadRejected, message, tensor.key}};
  };
  if (stats.constant() && logical_shape(tensor).size() > 1) {
    return warn("all " + counted(stats.numbers, "number") + " are " + number_text(stats.least));
  }
  if (!limits.denormals && stats.denormal * kDenormalShare >= stats.numbers) {
    return warn(share_text(stats.denormal, stats.numbers) +
                " are denormal, as memory is that nobody initialized");
  }
  return {};
}

}  // namespace

Findings judge_health(const StoredTensor& tensor, const ElementStats& stats,
                      const HealthLimits& limits) {
  if (stats.numbers == 0 || !is_float_like(tensor.dtype)) return {};
  Findings findings = beyond_limits(tensor, stats, limits);
  return findings.empty() ? unusual(tensor, stats, limits) : findings;
}

ElementStats stats_of(const ReaderResources& resources, const StoredTensor& tensor,
                      const std::function<void(std::uint64_t)>& at_step) {
  Bytes block(kReadBytes);
  ElementStats stats;
  TensorReader(resources, tensor)
      .read(Box::whole(logical_shape(tensor)), block, [&](const Box& /*box*/, ByteSpan elements) {
        stats.add(tensor.dtype, elements);
        if (at_step) at_step(elements.size());
      });
  return stats;
}

/// Measures the elements of one chunk while they are read through it.
class HealthMeter::Passing final : public ItemSource {
 public:
  Passing(HealthMeter& meter, std::unique_ptr<ItemSource> inner, const StoredTensor& tensor,
          ByteRange elements)
      : ItemSource(inner->place_at(0)),
        meter_(meter),
        inner_(std::move(inner)),
        tensor_(tensor),
        next_(elements.offset),
        end_(elements.offset + elements.size) {}
  ~Passing() override {
    Measured& measured = meter_.measured_[&tensor_];
    measured.stats.add(stats_);
    measured.elements += elements_;
  }
  Passing(const Passing&) = delete;
  Passing& operator=(const Passing&) = delete;

  std::uint64_t size() const override { return inner_->size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    inner_->read_at(offset, out);
    if (next_ == end_ || offset > next_ || offset + out.size() <= next_) return;
    const std::size_t width = size_of(tensor_.dtype);
    const std::uint64_t here = std::min(end_, offset + out.size()) - next_;
    const std::uint64_t whole = here / width * width;
    stats_.add(tensor_.dtype, ByteSpan(out).subspan(next_ - offset, whole));
    next_ += whole;
    elements_ += whole / width;
  }

 private:
  HealthMeter& meter_;
  std::unique_ptr<ItemSource> inner_;
  const StoredTensor& tensor_;
  std::uint64_t next_;  ///< the first byte of an element that was not measured
  std::uint64_t end_;
  std::uint64_t elements_ = 0;
  ElementStats stats_;
};

std::unique_ptr<ItemSource> HealthMeter::measured(Checkpoint& checkpoint,
                                                  std::unique_ptr<ItemSource> inner,
                                                  const StoredTensor& tensor,
                                                  const StoredChunk& chunk) {
  ByteRange elements{0, inner->size()};
  try {
    if (chunk.form == ItemForm::kArchive) {
      const TensorItem item = checkpoint.tensor_item(tensor, chunk);
      const bool passes = item.contiguous() && !item.byteswap && !item.flips.any();
      elements = {item.data_offset, passes ? item.element_bytes() : 0};
    }
  } catch (const Error&) {
    return inner;  // whoever reads the item reports this
  }
  return std::make_unique<Passing>(*this, std::move(inner), tensor, elements);
}

void HealthMeter::add(const HealthMeter& other) {
  for (const auto& [tensor, more] : other.measured_) {
    Measured& measured = measured_[tensor];
    measured.stats.add(more.stats);
    measured.elements += more.elements;
  }
}

void HealthMeter::measure_rest(Checkpoint& checkpoint, Device& device, Tasks& tasks) {
  std::vector<std::pair<const StoredTensor*, Measured*>> rest;
  for (const StoredTensor& tensor : checkpoint.catalog().tensors) {
    if (!is_float_like(tensor.dtype)) continue;
    Measured& measured = measured_[&tensor];
    const auto elements = static_cast<std::uint64_t>(volume(logical_shape(tensor)));
    if (measured.elements != elements) rest.emplace_back(&tensor, &measured);
  }
  if (rest.empty()) return;
  CheckpointCopies copies(checkpoint, tasks);
  do_all(tasks, rest.size(), [&](std::size_t thread) {
    return [&, own = &copies.of(thread), staging = Bytes(kReadBytes)](std::size_t i) mutable {
      const auto& [tensor, measured] = rest[i];
      try {
        measured->stats = stats_of({*own, device, staging}, *tensor);
      } catch (const Error& error) {
        measured->unread = finding_from(error.within({.key = tensor->key}));
      }
    };
  });
  copies.end_in(checkpoint);
  checkpoint.require_files_in_place();
}

HealthReport HealthMeter::report(Checkpoint& checkpoint, Device& device, Tasks& tasks,
                                 const HealthLimits& limits) {
  measure_rest(checkpoint, device, tasks);
  HealthReport report;
  std::uint64_t undefined = 0;  // buckets with NaN or infinite numbers
  for (const StoredTensor& tensor : checkpoint.catalog().tensors) {
    if (!is_float_like(tensor.dtype)) continue;
    const Measured& measured = measured_[&tensor];
    if (measured.unread) {
      report.findings.push_back(*measured.unread);
      continue;
    }
    if (is_of_bucket(name_of(tensor))) {
      ++report.buckets;
      undefined += measured.stats.finite() != measured.stats.numbers ? 1U : 0U;
      continue;
    }
    ++report.tensors;
    report.numbers += measured.stats.numbers;
    report.stats[tensor.key] = measured.stats;
    for (Finding& finding : judge_health(tensor, measured.stats, limits)) {
      report.findings.push_back(std::move(finding));
    }
  }
  if (report.buckets != 0) {
    report.findings.push_back(
        {Severity::kNote, Code::kLoadRejected,
         counted(report.buckets, "buffer") + " of the distributed optimizer " +
             (report.buckets == 1 ? "was" : "were") + " not judged (" + with_commas(undefined) +
             " with NaN or infinite numbers): between parameters, Megatron initializes nothing"});
  }
  return report;
}

}  // namespace reprise
