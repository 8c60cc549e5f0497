#pragma once
// As gloo/context.h.
