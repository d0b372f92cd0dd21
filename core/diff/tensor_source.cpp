#include "core/diff/tensor_source.hpp"

#include <algorithm>
#include <vector>

#include "core/base/print.hpp"

namespace reprise {
namespace {

constexpr std::size_t kBlocksShown = 3;

std::string relation_text(const ValueRelation& relation) {
  const std::string dtype(name_of(relation.dtype));
  switch (relation.kind) {
    case ValueRelation::Kind::kSameValue:
      return "every element of B has the value of A's";
    case ValueRelation::Kind::kRounded:
      return "every element of B is A's rounded to " + dtype;
    case ValueRelation::Kind::kRoundedBack:
      return "every element of A is B's rounded to " + dtype;
    case ValueRelation::Kind::kCut:
      return "every element of B is A's cut off to " + dtype + ", without rounding";
    case ValueRelation::Kind::kNegated:
      return "B is A negated";
    case ValueRelation::Kind::kScaled:
      break;
  }
  return "B is A times " + factor_text(relation.factor);
}

/// Returns, for example, "B[:, 2:4]".
std::string part_text(char side, const TensorSource& source, Interval lines) {
  std::string text = std::string(1, side) + "[";
  for (std::size_t d = 0; d < source.dimension; ++d) text += ":, ";
  return text + std::to_string(lines.begin) + ":" + std::to_string(lines.end) + "]";
}

std::string block_text(const TensorSource& source, const LineBlock& block) {
  return part_text('B', source, block.right) + " is " +
         part_text('A', source, {block.left, block.left + block.right.length()});
}

/// Returns the noun for lines along the dimension, such as "row".
std::string line_noun(const TensorSource& source) {
  if (source.ndim == 1) return "element";
  if (source.dimension == 0) return "row";
  if (source.ndim == 2) return "column";
  return "slice";
}

std::string permutation_text(const TensorSource& source) {
  const LineOrder& order = *source.order;
  auto first = std::ranges::find_if(order.blocks, &LineBlock::moved);
  LineBlock shown = *first;
  const std::string noun = line_noun(source);
  if (order.block != 0) {
    shown.right.end = shown.right.begin + order.block;
    return block_text(source, shown) + ": the same " + std::to_string(source.lines / order.block) +
           " blocks of " + counted(static_cast<std::uint64_t>(order.block), noun) + ", " +
           pattern_of(order);
  }
  std::int64_t least = source.lines;
  std::int64_t most = 0;
  for (const LineBlock& one : order.blocks) {
    least = std::min(least, one.right.length());
    most = std::max(most, one.right.length());
  }
  const std::string sizes = least == most ? "" : std::to_string(least) + " to ";
  return block_text(source, shown) + ": the same " + std::to_string(order.blocks.size()) +
         " blocks of " + sizes + counted(static_cast<std::uint64_t>(most), noun) + ", permuted";
}

std::string part_of_text(const TensorSource& source) {
  const LineOrder& order = *source.order;
  const bool any_moved = order.moved() != 0;
  std::string text;
  std::size_t shown = 0;
  std::size_t more = 0;
  for (const LineBlock& one : order.blocks) {
    if (any_moved && !one.moved()) continue;
    if (shown == kBlocksShown) {
      ++more;
      continue;
    }
    ++shown;
    text += (text.empty() ? "" : ", ") + block_text(source, one);
  }
  if (more != 0) text += ", and " + counted(more, "more block");
  const std::int64_t others = source.lines - order.found();
  const std::string noun = line_noun(source);
  if (others != 0) {
    text += "; " + counted(static_cast<std::uint64_t>(others), noun) + " of " +
            with_commas(static_cast<std::uint64_t>(source.lines)) + (others == 1 ? " is" : " are") +
            " not found in A";
  }
  return text;
}

}  // namespace

std::string sentence_of(const TensorSource& source, std::string_view key) {
  const std::string place = source.of_left ? "A" : "B";
  if (source.key != key) {
    std::string text = std::string(source.of_left ? "B" : "A") + "'s " + std::string(key) + " is " +
                       place + "'s " + source.key + (source.transposed ? " transposed" : "");
    if (source.alike != 0) {
      text += "; " + counted(source.alike, "other tensor") + " of " + place +
              (source.alike == 1 ? " has" : " have") + " the same elements";
    }
    return text;
  }
  std::string text;
  if (source.order) {
    text = source.order->permuted ? permutation_text(source) : part_of_text(source);
  } else if (source.transposed) {
    text = "B is A transposed";
  } else {
    return relation_text(*source.relation);
  }
  if (source.relation) text += ", and rounded to " + std::string(name_of(source.relation->dtype));
  return text;
}

}  // namespace reprise
