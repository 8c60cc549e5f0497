#pragma once
// A made-up table of reading times.
#include <string>
#include <vector>

/// The words of `the cats see a dog and`, over and over, each given two words before it at most, in the columns of
/// BabyLM's reading_data.csv. The first two words of a sentence have no previous one, and the fifth is given `None`,
/// which stands for a missing context where it is that of the sixth word's previous one.
inline std::string reading_table(int rows) {
  const std::vector<std::string> words{"the", "cats", "see", "a", "see", "and"};
  const std::vector<std::string> contexts{"the", "the", "the cats", "cats see", "None", "a dog"};
  const std::vector<std::string> lengths{"3", "4", "3", "1", "3", "3"};
  std::string text =
      "item,word,prev_item,prev_word,prev_length,length,context_length,Subtlex_log10,RTfirstfix,RTfirstpass,RTgopast,"
      "RTrightbound,self_paced_reading_time\n";
  for (int i = 0; i < rows; ++i) {
    const auto k = static_cast<size_t>(i % 6);
    const bool has_previous = k >= 2 && k != 4;
    text += contexts[k] + "," + words[k] + "," +
            (has_previous ? contexts[k - 1] + "," + words[k - 1] + "," + lengths[k - 1] : ",,");
    text +=
        "," + lengths[k] + "," + std::to_string(k) + "," + std::to_string(2 + i * 7 % 5) + "." + std::to_string(i % 10);
    for (int measure = 0; measure < 5; ++measure) text += "," + std::to_string(200 + (i * 37 + measure * 11) % 97);
    text += "\n";
  }
  return text;
}
