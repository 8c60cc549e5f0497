#include "evaluation/babylm/collate.h"

#include <sstream>

namespace cloze {

namespace {

/// The parts of a task: each name, then its number of predictions.
std::map<std::string, int64_t> parts_of(const char* names_and_numbers) {
  std::map<std::string, int64_t> parts;
  std::istringstream text(names_and_numbers);
  int64_t number = 0;
  for (std::string name; text >> name >> number;) parts[name] = number;
  return parts;
}

constexpr const char* blimp =
    "adjunct_island 928 anaphor_gender_agreement 971 anaphor_number_agreement 931 animate_subject_passive 895 "
    "animate_subject_trans 923 causative 818 complex_np_island 846 "
    "coordinate_structure_constraint_complex_left_branch 906 "
    "coordinate_structure_constraint_object_extraction 949 determiner_noun_agreement_1 929 "
    "determiner_noun_agreement_2 931 determiner_noun_agreement_irregular_1 681 "
    "determiner_noun_agreement_irregular_2 820 determiner_noun_agreement_with_adj_2 941 "
    "determiner_noun_agreement_with_adj_irregular_1 718 determiner_noun_agreement_with_adj_irregular_2 840 "
    "determiner_noun_agreement_with_adjective_1 933 distractor_agreement_relational_noun 788 "
    "distractor_agreement_relative_clause 871 drop_argument 920 ellipsis_n_bar_1 802 ellipsis_n_bar_2 828 "
    "existential_there_object_raising 812 existential_there_quantifiers_1 930 existential_there_quantifiers_2 911 "
    "existential_there_subject_raising 924 expletive_it_object_raising 759 inchoative 855 intransitive 868 "
    "irregular_past_participle_adjectives 961 irregular_past_participle_verbs 942 "
    "irregular_plural_subject_verb_agreement_1 804 irregular_plural_subject_verb_agreement_2 892 "
    "left_branch_island_echo_question 947 left_branch_island_simple_question 951 "
    "matrix_question_npi_licensor_present 929 npi_present_1 909 npi_present_2 914 only_npi_licensor_present 882 "
    "only_npi_scope 837 passive_1 840 passive_2 903 principle_a_c_command 946 principle_a_case_1 912 "
    "principle_a_case_2 915 principle_a_domain_1 914 principle_a_domain_2 915 principle_a_domain_3 941 "
    "principle_a_reconstruction 967 regular_plural_subject_verb_agreement_1 890 "
    "regular_plural_subject_verb_agreement_2 945 sentential_negation_npi_licensor_present 919 "
    "sentential_negation_npi_scope 871 sentential_subject_island 961 superlative_quantifiers_1 979 "
    "superlative_quantifiers_2 986 tough_vs_raising_1 948 tough_vs_raising_2 920 transitive 868 wh_island 960 "
    "wh_questions_object_gap 859 wh_questions_subject_gap 898 wh_questions_subject_gap_long_distance 857 "
    "wh_vs_that_no_gap 861 wh_vs_that_no_gap_long_distance 875 wh_vs_that_with_gap 919 "
    "wh_vs_that_with_gap_long_distance 910";

constexpr const char* supplement =
    "hypernym 842 qa_congruence_easy 64 qa_congruence_tricky 165 subject_aux_inversion 3867 turn_taking 280";

constexpr const char* ewok =
    "agent-properties 2210 material-dynamics 770 material-properties 170 physical-dynamics 120 "
    "physical-interactions 556 physical-relations 818 quantitative-properties 314 social-interactions 294 "
    "social-properties 328 social-relations 1548 spatial-relations 490";

constexpr const char* entity_tracking =
    "ambiref_0_ops 607 ambiref_1_ops 607 ambiref_2_ops 604 ambiref_3_ops 604 ambiref_4_ops 615 ambiref_5_ops 187 "
    "move_contents_0_ops 605 move_contents_1_ops 606 move_contents_2_ops 605 move_contents_3_ops 606 "
    "move_contents_4_ops 529 move_contents_5_ops 156 regular_0_ops 606 regular_1_ops 607 regular_2_ops 606 "
    "regular_3_ops 606 regular_4_ops 568 regular_5_ops 159";

constexpr const char* comps = "base 49340 wugs 13896 wugs_dist_before 13896 wugs_dist_in_between 13896";

constexpr const char* fast_entity_tracking =
    "regular_0_ops 606 regular_1_ops 607 regular_2_ops 606 regular_3_ops 606 regular_4_ops 568 regular_5_ops 159";

}  // namespace

const BabylmSizes& published_sizes() {
  static const BabylmSizes sizes{.full = {{"blimp", {.parts = parts_of(blimp)}},
                                          {"blimp_supplement", {.parts = parts_of(supplement)}},
                                          {"ewok", {.parts = parts_of(ewok)}},
                                          {"entity_tracking", {.parts = parts_of(entity_tracking)}},
                                          {"wug_adj", {.each = 200}},
                                          {"wug_past", {.each = 50}},
                                          {"comps", {.parts = parts_of(comps)}},
                                          {"reading", {.each = 1726}},
                                          {"boolq", {.each = 1635}},
                                          {"mnli", {.each = 4908}},
                                          {"mrpc", {.each = 204}},
                                          {"multirc", {.each = 2424}},
                                          {"qqp", {.each = 20215}},
                                          {"rte", {.each = 139}},
                                          {"wsc", {.each = 52}}},
                                 .fast = {{"blimp", {.each = 200}},
                                          {"blimp_supplement", {.each = 50}},
                                          {"ewok", {.each = 100}},
                                          {"entity_tracking", {.parts = parts_of(fast_entity_tracking)}},
                                          {"wug_adj", {.each = 200}},
                                          {"wug_past", {.each = 50}},
                                          {"reading", {.each = 1726}}},
                                 .acquisition = 8005};
  return sizes;
}

std::vector<std::string> babylm_revisions(BabylmTrack track) {
  std::vector<std::string> names;
  const int64_t longest = track == BabylmTrack::strict_small ? 100 : 1000;
  for (int64_t unit = 1; unit < longest; unit *= 10)
    for (int64_t count = 1; count <= 9; ++count) names.push_back("chck_" + std::to_string(count * unit) + "M");
  names.push_back("chck_" + std::to_string(longest) + "M");
  return names;
}

}  // namespace cloze
