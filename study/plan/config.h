#pragma once
// A study, as it stands in YAML: arms that differ in a few keys of one config, seeds, a budget, and what they are
// compared by.
//
//   study: masking
//   base: configs/bert/tiny.yaml
//   set: {data.tokens: tokens}
//   baseline: token
//   arms:
//     token: {}
//     word: {objectives.0.unit: word}
//   seeds: 5
//   budget: {tokens: 20M}
//   metric: {objective: mlm, better_by: 0.01}
//   secondary: [{suite: blimp, figure: accuracy}]
#include <string>
#include <vector>

#include "core/config/config.h"
#include "run/config/config.h"
#include "study/measures/metric.h"

namespace cloze {

/// What the runs of a study are compared by, declared before the first of them.
struct MetricConfig : MetricName {
  double better_by = 0;
  double confidence = 0.95;
  double power = 0.8;
  int64_t sequences = 1024;
  int64_t seed = 1;
};

template <class V>
void describe(V& v, MetricConfig& c) {
  describe(v, static_cast<MetricName&>(c));
  v("better_by", c.better_by,
    "the smallest difference that matters, in the unit of the metric (points for fractions); 0 = none is stated",
    in_range(0, 1e6));
  v("confidence", c.confidence, "level of the intervals, and 1 minus that of the tests", in_range(0.5, 0.9999));
  v("power", c.power, "probability with which a difference that is called detectable is found", in_range(0.5, 0.9999));
  v("sequences", c.sequences, "held-out sequences that are scored", in_range(2, 1e9));
  v("seed", c.seed, "seed of the held-out masks", at_least(0));
}

/// How the keys under `tune:` are searched.
struct TuningConfig {
  std::vector<int64_t> seeds{1};
  BudgetConfig budget{};
};

template <class V>
void describe(V& v, TuningConfig& c) {
  v("seeds", c.seeds, "number of seeds of every combination, from 100001 on, or a list; none is a seed of the study",
    in_range(0, 1e9));
  v("budget", c.budget,
    "what the search of one arm gets, shared evenly by its runs; empty = every run gets the budget of the study");
}

/// A head for the metric on networks that lack it.
struct ProbeHeadConfig {
  double share = 0;
  double learning_rate = 1e-3;
};

template <class V>
void describe(V& v, ProbeHeadConfig& c) {
  v("share", c.share,
    "share of the budget in which a new head for the metric is trained on the backbone of every arm, which stays as it "
    "is; 0 = arms are scored by their own heads",
    in_range(0, 0.9));
  v("learning_rate", c.learning_rate, "peak learning rate of the head (adamw, linear decay)", in_range(0, 1e3));
}

/// A stage of training that goes on from the networks of the one before.
struct LaterStageConfig {
  AnyKeys set{};
  AnyKeys arms{};
  BudgetConfig budget{};
};

template <class V>
void describe(V& v, LaterStageConfig& c) {
  v("set", c.set, "keys of this stage and of those after it, over those of the arm: other text, length or objectives");
  v("arms", c.arms, "keys of single arms in this stage: {ARM: {key.of.value: value}}");
  v("budget", c.budget, "what every run gets in this stage; schedules are stretched over it");
}

/// Tasks on which every run is fine-tuned.
struct StudyTasksConfig {
  std::vector<std::string> files{};
  int64_t seeds = 3;
  std::string like;
  AnyKeys set{};
  AnyKeys tune{};
  int64_t tuning_seeds = 1;
};

template <class V>
void describe(V& v, StudyTasksConfig& c) {
  v("files", c.files,
    "task files, relative to the study file or to the working directory, or names of those that ship with the program: "
    "sst2");
  v("seeds", c.seeds,
    "fine-tunings of each run on each task; their seeds, from 1 on, are those of the first weights of the head, of the "
    "order and of dropout together",
    in_range(1, 1000));
  v("like", c.like, "recipe of all fine-tunings; empty = `like` of the task file, else google-bert");
  v("set", c.set, "keys of every fine-tuning, over those of the recipe; task.KEY is one of the task file");
  v("tune", c.tune,
    "keys of the fine-tunings with a list of values each, such as optimizer.learning_rate: for every arm and task the "
    "combination is taken that is best on the valid part, over as many tries for each arm");
  v("tuning_seeds", c.tuning_seeds,
    "fine-tunings of each run on each task with each combination; their seeds, from 100001 on, are none that the "
    "verdict sees",
    in_range(1, 1000));
}

/// Arms that differ in a few keys.
struct StudyConfig {
  std::string study;
  std::string base;
  AnyKeys set{};
  std::string baseline;
  AnyKeys arms{};
  AnyKeys sweep{};
  std::vector<int64_t> seeds{5};
  std::vector<RandomStream> vary{};
  bool split = false;
  BudgetConfig budget{};
  MetricConfig metric{};
  std::vector<MetricName> secondary{};
  ProbeHeadConfig probe_head{};
  std::vector<LaterStageConfig> then{};
  StudyTasksConfig tasks{};
  AnyKeys tune{};
  TuningConfig tuning{};
  AnyKeys space{};
  int64_t trials = 0;
  int64_t halving = 0;
  int64_t points = 20;
};

template <class V>
void describe(V& v, StudyConfig& c) {
  v("study", c.study, "name of the study, which names its folder");
  v("base", c.base,
    "config of the runs, a path relative to the study file or to the working directory, or the name of one that ships: "
    "bert/tiny");
  v("set", c.set, "keys that every arm has, over those of the base: {key.of.value: value}");
  v("baseline", c.baseline, "arm that the others are compared with; empty = the first");
  v("arms", c.arms, "arms by name, each with the keys in which it differs; `from: ARM` starts from another arm");
  v("sweep", c.sweep, "keys with a list of values each: every arm is run with every combination");
  v("seeds", c.seeds, "number of seeds, 1 to that number, or a list of them", in_range(0, 1e9));
  v("vary", c.vary,
    "random streams that change with the seed, the others keep the first seed: init, order, masking, dropout; empty = "
    "all");
  v("split", c.split,
    "every arm is also run with each of these streams varied alone, so that the report can split the variance");
  v("budget", c.budget,
    "what every run gets (with `space`: what all trials get together); schedules are stretched over it");
  v("metric", c.metric, "what arms are compared by");
  v("secondary", c.secondary,
    "other metrics, which are shown beside the first and decide nothing; their tests are corrected over all of them");
  v("probe_head", c.probe_head, "a head for the metric on networks that lack it");
  v("then", c.then, "further stages of training, each from the networks of the one before; the last is compared");
  v("tasks", c.tasks, "tasks on which every run is fine-tuned, and judged");
  v("tune", c.tune,
    "keys with a list of values each: every arm is searched over all combinations, and runs with its "
    "best");
  v("tuning", c.tuning, "how `tune` is searched");
  v("space", c.space,
    "keys of a random search instead of arms, each with a list of values, {log: [low, high]}, "
    "{uniform: [low, high]} or {integers: [low, high]}");
  v("trials", c.trials, "configs that are drawn from `space`", in_range(0, 1000));
  v("halving", c.halving,
    "successive halving: of every so many trials one goes on to the next rung, with a budget so many times larger; 0 = "
    "all trials get the same budget",
    in_range(0, 100));
  v("points", c.points, "held-out evaluations along a run, for the curves", in_range(1, 1000));
}

}  // namespace cloze
