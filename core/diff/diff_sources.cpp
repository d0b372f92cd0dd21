#include "core/diff/diff_sources.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/checkpoint/batches.hpp"
#include "core/diff/line_digests.hpp"
#include "core/diff/source_reader.hpp"
#include "core/diff/unread_items.hpp"
#include "core/geometry/convert.hpp"
#include "core/geometry/dtype.hpp"

namespace reprise {
namespace {

constexpr std::uint64_t kLinesMax = std::uint64_t{1} << 22U;
constexpr std::uint64_t kDigestsAtOnce = std::uint64_t{1} << 23U;
/// Tensors and lines of fewer bytes are alike by chance.
constexpr std::uint64_t kTellingBytes = 16;
/// Short lines in another order are alike by chance, too, if fewer are different: those of a mask.
constexpr std::uint64_t kTellingLines = 8;

/// A tensor whose source is looked for.
struct Target {
  TensorDiff* row = nullptr;
  const StoredTensor* left = nullptr;
  const StoredTensor* right = nullptr;

  bool one_sided() const { return left == nullptr || right == nullptr; }
};

/// A tensor whose digests are computed, of its elements as a type.
struct Digested {
  SidedTensor which;
  DType dtype = DType::kFloat32;

  friend auto operator<=>(const Digested&, const Digested&) = default;
};

/// Type and number of elements. Other tensors need not be read.
using TensorKind = std::pair<DType, std::int64_t>;
TensorKind tensor_kind_of(const StoredTensor& tensor) {
  return {tensor.dtype, volume(logical_shape(tensor))};
}

std::uint64_t size_in_bytes(const StoredTensor& tensor) {
  return static_cast<std::uint64_t>(volume(logical_shape(tensor))) * size_of(tensor.dtype);
}

bool has_lines(const StoredTensor& tensor) {
  const Dims& shape = logical_shape(tensor);
  return shape.size() != 0 && size_in_bytes(tensor) >= kTellingBytes &&
         LineDigests::rows_of(shape) <= kLinesMax;
}

/// True if lines of so many bytes, all of which are found in another order, are not so by chance.
bool tells_order(std::vector<std::uint64_t> lines, std::uint64_t line_bytes) {
  const std::uint64_t least = std::min<std::uint64_t>(lines.size(), kTellingLines);
  std::ranges::sort(lines);
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines.size() >= least && lines.size() * line_bytes >= kTellingBytes;
}

bool has_columns(const Dims& shape) { return LineDigests::columns_of(shape) <= kLinesMax; }

std::uint64_t digests_of(const StoredTensor& tensor) {
  const Dims& shape = logical_shape(tensor);
  return LineDigests::rows_of(shape) + (has_columns(shape) ? LineDigests::columns_of(shape) : 0);
}

bool is_target(const TensorDiff& row) { return counts_as_different(row.verdict) && !row.unread; }

Dims with_last_exchanged(Dims shape) {
  if (shape.size() >= 2) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return shape;
}

/// True if the shapes differ at most along one dimension.
bool same_but_along(const Dims& left, const Dims& right, std::size_t dimension) {
  if (left.size() != right.size()) return false;
  for (std::size_t d = 0; d < left.size(); ++d) {
    if (d != dimension && left[d] != right[d]) return false;
  }
  return true;
}

/// True if the order says something: lines stand elsewhere, and are not a small part of those that
/// changed; or a tensor was made longer or shorter.
bool tells(const LineOrder& order, std::int64_t left_lines, std::int64_t right_lines) {
  if (left_lines != right_lines) return order.found() != 0;
  const std::int64_t in_place = order.found() - order.moved();
  return order.moved() != 0 && order.moved() * 2 >= right_lines - in_place;
}

class SourceFinder {
 public:
  SourceFinder(Checkpoint& left, Checkpoint& right, const SurveyPorts& ports, DiffReport& report)
      : left_(left), right_(right), ports_(ports), report_(report) {
    for (TensorDiff& row : report.tensors) {
      if (!is_target(row)) continue;
      Target target{&row, row.left ? left.catalog().tensor(row.key) : nullptr,
                    row.right ? right.catalog().tensor(row.key) : nullptr};
      const bool found = (target.left != nullptr) == row.left.has_value() &&
                         (target.right != nullptr) == row.right.has_value();
      if (found) targets_.push_back(target);
    }
  }

  void find() {
    if (targets_.empty()) return;
    from_one_checkpoint(
        [this] {
          on_all_threads([](SourceReader& reader, Target& target) { relate(reader, target); });
          digest();
          match_by_name();
          on_all_threads([this](SourceReader& reader, Target& target) { prove(reader, target); });
        },
        [this] {
          left_.require_in_place();
          right_.require_in_place();
        });
  }

 private:
  struct Summary {
    Digested what;
    std::uint64_t whole = 0;
    std::optional<std::uint64_t> transposed;
    bool constant = false;
  };
  using Lines = std::map<Digested, std::unique_ptr<LineDigests>>;

  void on_all_threads(const std::function<void(SourceReader&, Target&)>& work) {
    do_all(ports_.tasks, targets_.size(), [&](std::size_t /*thread*/) {
      auto reader = std::make_shared<SourceReader>(left_, right_, ports_.device);
      return [this, &work, reader](std::size_t i) {
        try {
          work(*reader, targets_[i]);
        } catch (const Error& error) {
          if (!concerns_one_item(error)) throw;
          targets_[i].row->source.reset();  // the diff itself tells what can't be read
        }
        reader->require_in_place();
      };
    });
  }

  static void relate(SourceReader& reader, Target& target) {
    if (target.one_sided() || !can_relate(target.left->dtype, target.right->dtype)) return;
    if (std::max(size_in_bytes(*target.left), size_in_bytes(*target.right)) < kTellingBytes) return;
    if (all_extents(*target.left) != all_extents(*target.right)) return;
    const auto relation = reader.relation(*target.left, *target.right, target.row->first);
    if (relation) target.row->source = TensorSource{.key = target.row->key, .relation = relation};
  }

  /// The types of both sides' elements when they are compared by lines.
  static Digested digested_left(const Target& target) {
    const bool converted = target.left->dtype != target.right->dtype &&
                           can_convert(target.left->dtype, target.right->dtype) &&
                           size_of(target.right->dtype) < size_of(target.left->dtype);
    return {{true, target.left}, converted ? target.right->dtype : target.left->dtype};
  }
  static Digested as_stored(bool of_left, const StoredTensor& tensor) {
    return {{of_left, &tensor}, tensor.dtype};
  }

  void digest() {
    std::vector<std::vector<Digested>> together;  // what is needed at the same time
    std::set<TensorKind> wanted_left;
    std::set<TensorKind> wanted_right;
    std::map<Digested, bool> known;
    for (const Target& target : targets_) {
      if (target.row->source) continue;
      if (target.right != nullptr && has_lines(*target.right)) {
        wanted_left.insert(tensor_kind_of(*target.right));
        together.push_back({as_stored(false, *target.right)});
        if (target.left != nullptr && has_lines(*target.left)) {
          together.back().push_back(digested_left(target));
        }
      } else if (target.right == nullptr && has_lines(*target.left)) {
        wanted_right.insert(tensor_kind_of(*target.left));
        together.push_back({as_stored(true, *target.left)});
      }
    }
    for (const auto& group : together) {
      for (const Digested& one : group) known[one] = true;
    }
    const auto add_others = [&](bool of_left, const std::set<TensorKind>& wanted) {
      for (const StoredTensor& tensor : (of_left ? left_ : right_).catalog().tensors) {
        if (!wanted.contains(tensor_kind_of(tensor)) || !has_lines(tensor)) continue;
        if (known.try_emplace(as_stored(of_left, tensor), true).second) {
          together.push_back({as_stored(of_left, tensor)});
        }
      }
    };
    add_others(true, wanted_left);
    add_others(false, wanted_right);
    for (std::size_t begin = 0; begin < together.size();) {
      std::uint64_t digests = 0;
      Lines lines;
      for (; begin < together.size(); ++begin) {
        for (const Digested& one : together[begin]) digests += digests_of(*one.which.tensor);
        if (!lines.empty() && digests > kDigestsAtOnce) break;
        for (const Digested& one : together[begin]) {
          const Dims& shape = logical_shape(*one.which.tensor);
          lines.try_emplace(
              one, std::make_unique<LineDigests>(shape, size_of(one.dtype), has_columns(shape)));
        }
      }
      if (!compute(lines)) continue;
      compare_lines(lines);
      for (const auto& [what, own] : lines) {
        if (what.dtype != what.which.tensor->dtype) continue;
        summaries_.push_back({what, own->whole(), own->transposed(), own->constant()});
      }
    }
  }

  /// Returns false, and tells it, if something can't be read.
  bool compute(Lines& lines) {
    try {
      compute(true, lines);
      compute(false, lines);
      return true;
    } catch (const Error& error) {
      if (!concerns_one_item(error)) throw;
      report_.notes.push_back(finding_from(error, Severity::kNote));
      report_.notes.back().message =
          "not all sources were looked for: " + report_.notes.back().message;
      return false;
    }
  }

  void compute(bool of_left, Lines& lines) {
    std::vector<SurveyItem> items;
    std::vector<std::pair<DType, LineDigests*>> of_item;
    for (auto& [what, own] : lines) {
      if (what.which.of_left != of_left) continue;
      add_chunks(*what.which.tensor, items);
      of_item.resize(items.size(), {what.dtype, own.get()});
    }
    survey(of_left ? left_ : right_, items, ports_, [&](std::size_t i) -> TakeElements {
      return [to = of_item[i].first, own = of_item[i].second, from = items[i].tensor->dtype,
              scratch = std::vector<std::uint64_t>(),
              converted = Bytes()](const Box& box, ByteSpan elements) mutable {
        if (from != to) {
          converted.resize(elements.size() / size_of(from) * size_of(to));
          convert(from, elements, to, converted.data());
          elements = converted;
        }
        own->add(box, elements, scratch);
      };
    });
  }

  /// Compares the lines of both sides of each target whose digests are at hand.
  void compare_lines(const Lines& lines) {
    for (Target& target : targets_) {
      if (target.one_sided() || target.row->source) continue;
      const auto left = lines.find(digested_left(target));
      const auto right = lines.find(as_stored(false, *target.right));
      if (left == lines.end() || right == lines.end()) continue;
      if (left->second->constant() || right->second->constant()) continue;
      if (left->first.dtype != target.right->dtype) continue;
      target.row->source = source_by_lines(target, *left->second, *right->second);
    }
  }

  static std::optional<TensorSource> source_by_lines(const Target& target, const LineDigests& left,
                                                     const LineDigests& right) {
    const Dims& shape = right.shape();
    TensorSource found{.key = target.row->key, .ndim = shape.size()};
    if (target.left->dtype != target.right->dtype) {
      found.relation = {.kind = ValueRelation::Kind::kRounded, .dtype = target.right->dtype};
    }
    if (left.shape() == with_last_exchanged(shape) && left.transposed() == right.whole()) {
      found.transposed = true;
      return found;
    }
    const auto elements = static_cast<std::uint64_t>(volume(shape));
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (!same_but_along(left.shape(), shape, d)) continue;
      const auto from = left.along(d);
      const auto to = right.along(d);
      if (from.empty() || to.empty()) continue;
      LineOrder order = order_of(from, to);
      const std::uint64_t line_bytes = elements / to.size() * size_of(target.right->dtype);
      const bool tells_all =
          line_bytes >= kTellingBytes || (order.permuted && tells_order(to, line_bytes));
      if (!tells_all || !tells(order, left.shape()[d], shape[d])) continue;
      // We take the dimension along which more is found.
      if (found.order && found.order->found() * shape[d] >= order.found() * found.lines) continue;
      found.order = std::move(order);
      found.dimension = d;
      found.lines = shape[d];
    }
    return found.order ? std::optional(std::move(found)) : std::nullopt;
  }

  /// Looks for a tensor of another name with the same digest.
  void match_by_name() {
    std::map<std::pair<DType, std::uint64_t>, std::vector<const Summary*>> by_digest[2];
    std::map<SidedTensor, const Summary*> own;
    for (const Summary& one : summaries_) {
      own[one.what.which] = &one;
      if (one.constant) continue;
      auto& of_side = by_digest[one.what.which.of_left ? 0 : 1];
      of_side[{one.what.dtype, one.whole}].push_back(&one);
    }
    std::set<std::string_view> keys;
    for (const Target& target : targets_) keys.insert(target.row->key);
    for (Target& target : targets_) {
      const bool has_order =
          target.row->source && target.row->source->order && !target.row->source->order->permuted;
      if (target.row->source && !has_order) continue;
      const bool in_left = target.right != nullptr;  // where the source is looked for
      const SidedTensor mine{!in_left, in_left ? target.right : target.left};
      const auto summary = own.find(mine);
      if (summary == own.end() || summary->second->constant) continue;
      const Dims& shape = logical_shape(*mine.tensor);
      const auto match = [&](std::uint64_t digest, const Dims& wanted, bool transposed) {
        const auto found = by_digest[in_left ? 0 : 1].find({mine.tensor->dtype, digest});
        if (found == by_digest[in_left ? 0 : 1].end()) return false;
        std::vector<const StoredTensor*> alike;
        for (const Summary* one : found->second) {
          const StoredTensor* tensor = one->what.which.tensor;
          if (logical_shape(*tensor) == wanted && tensor->key != mine.tensor->key) {
            alike.push_back(tensor);
          }
        }
        if (alike.empty()) return false;
        // One that is gone from its place, before a copy of one that stayed.
        const auto gone = std::ranges::find_if(alike, [this](const StoredTensor* tensor) {
          return std::ranges::any_of(
              targets_, [tensor](const Target& other) { return other.row->key == tensor->key; });
        });
        const StoredTensor* chosen = gone == alike.end() ? alike.front() : *gone;
        target.row->source = TensorSource{.key = chosen->key,
                                          .of_left = in_left,
                                          .alike = alike.size() - 1,
                                          .transposed = transposed,
                                          .ndim = shape.size()};
        return true;
      };
      if (match(summary->second->whole, shape, false)) continue;
      if (shape.size() >= 2 && summary->second->transposed) {
        match(*summary->second->transposed, with_last_exchanged(shape), true);
      }
    }
  }

  /// Reads what the digests suggest, and takes back what is not so.
  void prove(SourceReader& reader, Target& target) {
    if (!target.row->source) return;
    TensorSource& source = *target.row->source;
    const bool by_arithmetic = source.relation && !source.order && !source.transposed;
    if (by_arithmetic) return;  // every element was read
    const SidedTensor to{!source.of_left, source.of_left ? target.right : target.left};
    const SidedTensor from{source.of_left,
                           (source.of_left ? left_ : right_).catalog().tensor(source.key)};
    const bool holds = source.order
                           ? prove_lines(reader, from, to, source)
                           : reader.compare(from, Box::whole(logical_shape(*from.tensor)), to,
                                            Box::whole(logical_shape(*to.tensor)),
                                            source.transposed) == SourceReader::Equal::kYes;
    if (!holds) target.row->source.reset();
  }

  static bool prove_lines(SourceReader& reader, SidedTensor from, SidedTensor to,
                          TensorSource& source) {
    LineOrder& order = *source.order;
    const auto equal = reader.compare(from, to, source.dimension, order.blocks);
    std::vector<LineBlock> proved;
    for (std::size_t i = 0; i < order.blocks.size(); ++i) {
      if (equal[i] == SourceReader::Equal::kNo) return false;
      const bool by_chance = equal[i] == SourceReader::Equal::kConstant && order.blocks[i].moved();
      if (order.permuted || !by_chance) proved.push_back(order.blocks[i]);
    }
    order.blocks = std::move(proved);
    return tells(order, logical_shape(*from.tensor)[source.dimension], source.lines);
  }

  Checkpoint& left_;
  Checkpoint& right_;
  const SurveyPorts& ports_;
  DiffReport& report_;
  std::vector<Target> targets_;
  std::vector<Summary> summaries_;
};

}  // namespace

void find_sources(Checkpoint& left, Checkpoint& right, const SurveyPorts& ports,
                  DiffReport& report) {
  SourceFinder(left, right, ports, report).find();
}

}  // namespace reprise
