#pragma once
// What several passes over the same items say together: dropout drawn anew, or several networks.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tasks/scores/item_prediction.h"

namespace cloze {

/// How sure passes are of an item.
struct Uncertainty {
  std::optional<double> entropy{};  ///< nats, of the probabilities of one label
  std::optional<double>
      mutual_information{};           ///< nats, of the label and the pass: the entropy of the mean less the mean
  std::optional<double> deviation{};  ///< of values over passes, with n - 1
};

struct MeanPrediction {
  ItemPrediction item{};
  Uncertainty uncertainty{};
};

/// Why several passes over a task give no mean prediction; empty: they do. Tags and answers have none.
std::string no_mean_of(AnyTaskKind kind);

/// The mean of predictions for one item: of probabilities, whose label is the likeliest one, or whose labels are those
/// above a half; of values. It has no loss. Probabilities of one label are those at the temperature.
/// Source: Gal and Ghahramani 2016 (arXiv 1506.02142), section 4; Lakshminarayanan et al. 2017 (arXiv 1612.01474),
/// section 2.4; mutual information: Houlsby et al. 2011.
MeanPrediction mean_prediction(AnyTaskKind kind, std::span<const ItemPrediction> passes, double temperature = 1);

/// Sets of labels that hold what is right in a wanted share of cases, whatever the network.
class ConformalSets {
 public:
  /// Of the probability of what is right on other items of the same kind, the quantile with the correction for their
  /// number. Source: Sadinle et al. 2019 (arXiv 1609.00451), section 2; Angelopoulos and Bates 2021, section 1. Throws
  /// ConfigError for fewer items than the coverage asks for.
  ConformalSets(double coverage, const std::vector<TaskItem>& items, const std::vector<TaskPrediction>& predictions);
  /// The labels whose probability is at least that quantile, the likeliest first. May be empty.
  std::vector<int64_t> labels_of(const std::vector<double>& probabilities) const;

 private:
  double least_ = 0;
};

}  // namespace cloze
