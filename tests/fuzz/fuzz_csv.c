#define FORMAT CSV
#include "data.h"
