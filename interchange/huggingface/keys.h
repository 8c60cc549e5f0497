#pragma once
// What the tables of config.json are made of: a key is read and written by one entry. Defaults are those of
// transformers 5.23, as in tests/interchange/huggingface_defaults.json.
#include <algorithm>
#include <concepts>
#include <functional>
#include <string>
#include <vector>

#include "core/contains.h"
#include "core/json.h"
#include "core/spelling.h"
#include "interchange/huggingface/json_file.h"
#include "models/encoder_decoder_config.h"
#include "models/families/model_config.h"

namespace cloze::huggingface {

using nlohmann::json;

/// The class that a config.json names; empty: none.
std::string named_class(const json& config);

/// A value to read.
struct ConfigValue {
  const json& value;  ///< of the file, else the default of the class; may be null
  const json& file;   ///< the whole object
  std::string key, path;

  template <class T>
  T as() const {
    if constexpr (is_choice<T>) return choice<T>(as<std::string>());
    T field{};
    require<ConfigError>(!value.is_null(), path, ": '", key, "' is null, which the class does not allow; give a value");
    take(json{{key, value}}, key.c_str(), field, path);
    return field;
  }
  /// The number. Throws ConfigError for one below `least`.
  int64_t at_least(int64_t least) const {
    const auto number = as<int64_t>();
    require<ConfigError>(number >= least, path, ": ", key, " is ", number, ", must be at least ", least);
    return number;
  }
  /// The choice of this name. Throws ConfigError for an unknown name.
  template <class E>
  E choice(const std::string& name) const {
    const auto known = any_of<E>().allowed;
    require<ConfigError>(contains(known, name), path, ": ", key, " is '", name, "', which is unknown",
                         did_you_mean(name, known));
    return choice_of<E>(name);
  }
};

/// What `write` gives for a key that is left out.
inline const json omitted = json(json::value_t::discarded);

/// A key of config.json and its conversion from and to a config: a model's, or a part of one.
template <class Config>
struct Key {
  std::string name;
  json absent{};                                            ///< the default of the class for an absent key
  bool may_be_null = false;                                 ///< if false, null means that the key is absent
  std::function<void(Config&, const ConfigValue&)> read{};  ///< none: the key is not read
  std::function<json(const Config&)> write{};               ///< none: it is left out

  /// The same key of a config that has this one as a part.
  template <class Whole>
    requires(std::derived_from<Whole, Config> && !std::same_as<Whole, Config>)
  operator Key<Whole>() const {
    return {.name = name, .absent = absent, .may_be_null = may_be_null, .read = read, .write = write};
  }
};
template <class Config>
using Keys = std::vector<Key<Config>>;

/// A model, and the keys of config.json that read and write it: of its own struct and of those that it derives from.
struct Table {
  /// A key of whichever model.
  struct Entry {
    std::string name;
    json absent;
    bool may_be_null;
    std::function<void(ModelConfig&, const ConfigValue&)> read;
    std::function<json(const ModelConfig&)> write;
  };
  template <class Model, class Owner>
    requires std::derived_from<Model, Owner>
  Table(const Model& defaults, const Keys<Owner>& keys_of_model);
  ModelConfig model;  ///< with its defaults
  std::vector<Entry> keys{};
};

template <class Model, class Owner>
  requires std::derived_from<Model, Owner>
Table::Table(const Model& defaults, const Keys<Owner>& keys_of_model) : model(defaults) {
  const auto own = [](auto& any) -> auto& {
    auto* typed = as<Model>(any);
    require(typed != nullptr, kind_of(any), " is not read and written by the keys of ", Model::kind);
    return *typed;
  };
  for (const auto& key : keys_of_model)
    keys.push_back(
        {.name = key.name,
         .absent = key.absent,
         .may_be_null = key.may_be_null,
         .read =
             [own, read = key.read](ModelConfig& c, const ConfigValue& in) {
               if (read) read(own(c), in);
             },
         .write = [own, write = key.write](const ModelConfig& c) { return write ? write(own(c)) : omitted; }});
}

/// A value as config.json has it, a choice by its name.
template <class T>
json json_of(const T& value) {
  if constexpr (is_choice<T>)
    return json(name_of(value));
  else
    return json(value);
}

/// A key with the same meaning in Cloze.
template <class T, class Owner>
Key<Owner> field(const char* name, T Owner::* member, std::type_identity_t<T> absent) {
  return {.name = name,
          .absent = json_of(absent),
          .read = [member](Owner& c, const ConfigValue& in) { c.*member = in.as<T>(); },
          .write = [member](const Owner& c) { return json_of(c.*member); }};
}

/// A size, of at least `least`.
template <class Owner>
Key<Owner> size(const char* name, int64_t Owner::* member, int64_t absent, int64_t least = 1) {
  auto key = field(name, member, absent);
  key.read = [member, least](Owner& c, const ConfigValue& in) { c.*member = in.at_least(least); };
  return key;
}

/// An id; null means none, -1 in Cloze. A list of one id is that id.
template <class Owner>
Key<Owner> id(const char* name, int64_t Owner::* member, json absent) {
  return {.name = name,
          .absent = std::move(absent),
          .may_be_null = true,
          .read =
              [member](Owner& c, const ConfigValue& in) {
                require<ConfigError>(!in.value.is_array() || in.value.size() == 1, in.path, ": '", in.key, "' is ",
                                     json_text(in.value), ", but Cloze supports one id; give that one");
                const json one = in.value.is_array() ? in.value[0] : in.value;
                c.*member = one.is_null() ? -1 : ConfigValue{one, in.file, in.key, in.path}.as<int64_t>();
              },
          .write =
              [member](const Owner& c) {
                const auto value = c.*member;
                return value >= 0 ? json(value) : json();
              }};
}

/// A count; null means 0 in Cloze.
template <class Owner>
Key<Owner> count_or_null(const char* name, int64_t Owner::* member, json absent) {
  return {.name = name,
          .absent = std::move(absent),
          .may_be_null = true,
          .read = [member](Owner& c, const ConfigValue& in) { c.*member = in.value.is_null() ? 0 : in.as<int64_t>(); },
          .write =
              [member](const Owner& c) {
                const auto value = c.*member;
                return value > 0 ? json(value) : json();
              }};
}

/// A size of the decoder; null, or 0 in Cloze, means that of the encoder.
template <class Owner>
Key<EncoderDecoderConfig> decoder_size(const char* name, int64_t EncoderDecoderConfig::* member,
                                       int64_t Owner::* encoder, json absent) {
  return {.name = name,
          .absent = std::move(absent),
          .may_be_null = true,
          .read = [=](EncoderDecoderConfig& c,
                      const ConfigValue& in) { c.*member = in.value.is_null() ? c.*encoder : in.at_least(1); },
          .write = [=](const EncoderDecoderConfig& c) { return json(c.*member > 0 ? c.*member : c.*encoder); }};
}

/// A key of which Cloze supports a single value.
Key<TransformerConfig> only(const char* name, json value);
/// A key that is written only, derived from other fields.
Key<TransformerConfig> derived(const char* name, json absent, std::function<json(const TransformerConfig&)> write);
/// One dropout rate, for several fields of Cloze.
Key<TransformerConfig> dropout(const char* name, double absent);
/// The padding id, whose embedding gets no gradient; null: all embeddings get gradients.
Key<TransformerConfig> padding(int64_t absent);
/// The kind of position embeddings, a key of transformers 4.
Key<TransformerConfig> position_type();
/// The width of factorised embeddings.
Key<TransformerConfig> embedding_size();

/// The keys that the encoders of BERT's kind share, with the defaults of BERT.
Keys<TransformerConfig> encoder_keys();
/// Keys of classes that may be encoder or decoder; only a decoder has an end token.
Keys<TransformerConfig> encoder_or_decoder_keys(json eos_token_id);

/// The keys of a model besides those of a part of it.
template <class Part, class Config>
  requires std::derived_from<Config, Part>
Keys<Config> operator+(const Keys<Part>& of_part, const Keys<Config>& own) {
  Keys<Config> all(of_part.begin(), of_part.end());
  all.insert(all.end(), own.begin(), own.end());
  return all;
}
/// The same keys with other defaults.
template <class Config>
Keys<Config> with_defaults(Keys<Config> keys, const json& absent) {
  for (auto& key : keys)
    if (absent.contains(key.name)) key.absent = absent[key.name];
  return keys;
}

}  // namespace cloze::huggingface
