#pragma once
// What the tables of config.json are made of: a key is read and written by one entry. Defaults are those of
// transformers 5.23, as in tests/interchange/huggingface_defaults.json.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/spelling.h"
#include "interchange/huggingface/json_file.h"
#include "models/encoder_decoder_config.h"
#include "models/families/model_config.h"

namespace cloze::huggingface {

using nlohmann::json;

/// The class that a config.json names; empty: none.
std::string named_class(const json& config);

/// A value to read.
struct Given {
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
    require<ConfigError>(std::find(known.begin(), known.end(), name) != known.end(), path, ": ", key, " is '", name,
                         "', which is unknown", did_you_mean(name, known));
    return choice_of<E>(name);
  }
};

/// A key of config.json and its conversion from and to a model config.
struct Key {
  std::string name;
  json absent{};             ///< the default of the class for an absent key
  bool may_be_null = false;  ///< if false, null means that the key is absent
  std::function<void(BackboneConfig&, const Given&)> read = [](BackboneConfig&, const Given&) {};
  std::function<json(const BackboneConfig&)> write = [](const BackboneConfig&) { return omitted; };
  inline static const json omitted = json(json::value_t::discarded);  ///< from `write`: no such key
};
using Keys = std::vector<Key>;

/// The part of a model config that declares a field, for `field` and others.
template <class Owner>
Owner& part(BackboneConfig& c) {
  return static_cast<Owner&>(c);
}
template <class Owner>
const Owner& part(const BackboneConfig& c) {
  return static_cast<const Owner&>(c);
}
/// A field of a part, as one of the family that has the part.
template <class Family, class T, class Part>
constexpr T Family::* of_family(T Part::* member) {
  return member;
}
inline EncoderDecoderConfig& encoder_decoder(BackboneConfig& c) { return part<EncoderDecoderConfig>(c); }
inline const EncoderDecoderConfig& encoder_decoder(const BackboneConfig& c) { return part<EncoderDecoderConfig>(c); }
template <>
inline DecodingIds& part<DecodingIds>(BackboneConfig& c) {
  return encoder_decoder(c);
}
template <>
inline const DecodingIds& part<DecodingIds>(const BackboneConfig& c) {
  return encoder_decoder(c);
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
Key field(const char* name, T Owner::* member, std::type_identity_t<T> absent) {
  return {.name = name,
          .absent = json_of(absent),
          .read = [member](BackboneConfig& c, const Given& in) { part<Owner>(c).*member = in.as<T>(); },
          .write = [member](const BackboneConfig& c) { return json_of(part<Owner>(c).*member); }};
}

/// A size, of at least `least`.
template <class Owner>
Key size(const char* name, int64_t Owner::* member, int64_t absent, int64_t least = 1) {
  auto key = field(name, member, absent);
  key.read = [member, least](BackboneConfig& c, const Given& in) { part<Owner>(c).*member = in.at_least(least); };
  return key;
}

/// An id; null means none, -1 in Cloze. A list of one id is that id.
template <class Owner>
Key id(const char* name, int64_t Owner::* member, json absent) {
  return {.name = name,
          .absent = std::move(absent),
          .may_be_null = true,
          .read =
              [member](BackboneConfig& c, const Given& in) {
                require<ConfigError>(!in.value.is_array() || in.value.size() == 1, in.path, ": '", in.key, "' is ",
                                     in.value.dump(), ", but Cloze supports one id; give that one");
                const json one = in.value.is_array() ? in.value[0] : in.value;
                part<Owner>(c).*member = one.is_null() ? -1 : Given{one, in.file, in.key, in.path}.as<int64_t>();
              },
          .write =
              [member](const BackboneConfig& c) {
                const auto value = part<Owner>(c).*member;
                return value >= 0 ? json(value) : json();
              }};
}

/// A count; null means 0 in Cloze.
template <class Owner>
Key count_or_null(const char* name, int64_t Owner::* member, json absent) {
  return {.name = name,
          .absent = std::move(absent),
          .may_be_null = true,
          .read = [member](BackboneConfig& c,
                           const Given& in) { part<Owner>(c).*member = in.value.is_null() ? 0 : in.as<int64_t>(); },
          .write =
              [member](const BackboneConfig& c) {
                const auto value = part<Owner>(c).*member;
                return value > 0 ? json(value) : json();
              }};
}

/// A size of the decoder; null, or 0 in Cloze, means that of the encoder.
template <class Owner>
Key decoder_size(const char* name, int64_t EncoderDecoderConfig::* member, int64_t Owner::* encoder, json absent) {
  return {
      .name = name,
      .absent = std::move(absent),
      .may_be_null = true,
      .read = [=](BackboneConfig& c,
                  const Given& in) { encoder_decoder(c).*member = in.value.is_null() ? c.*encoder : in.at_least(1); },
      .write =
          [=](const BackboneConfig& c) {
            return json(encoder_decoder(c).*member > 0 ? encoder_decoder(c).*member : c.*encoder);
          }};
}

/// A key of which Cloze supports a single value.
Key only(const char* name, json value);
/// A key that is written only, derived from other fields.
Key derived(const char* name, json absent, std::function<json(const BackboneConfig&)> write);
/// One dropout rate, for several fields of Cloze.
Key dropout(const char* name, double absent);
/// The padding id, whose embedding gets no gradient; null: all embeddings get gradients.
Key padding(int64_t absent);
/// The kind of position embeddings, a key of transformers 4.
Key position_type();
/// The width of factorised embeddings.
Key embedding_size();

/// The keys that the encoders of BERT's kind share, with the defaults of BERT.
Keys encoder_keys();
/// Keys of classes that may be encoder or decoder; only a decoder has an end token.
Keys encoder_or_decoder_keys(json eos_token_id);

Keys operator+(Keys a, const Keys& b);
/// The same keys with other defaults.
Keys with_defaults(Keys keys, const json& absent);

}  // namespace cloze::huggingface
