/* Rule W for one factory at a time: what marlab.market.rules computes for arrays, with everything at hand in registers.
 *
 * Compiled by the system's compiler for processors and by NVRTC for GPUs. Defined by whoever compiles: REAL, WIDE
 * (partners of a side), a field's number F_x for every number of a DayState, R_x for every field of the records, and the
 * constants of the rules. Sums and products are written in the order in which the arrays compute them, so that results
 * are equal to the last bit wherever the libraries round alike.
 *
 * `suppliers` answers suppliers and says what waiting depends on; `consumers` weighs waiting and answers consumers;
 * `wishes` only says what it would like to answer them, for whoever decides otherwise; `note` remembers offers.
 */
#ifdef __CUDACC__
#define INSIDE static __device__ __forceinline__
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#else
#include <stdlib.h>
#include <tgmath.h>
#define INSIDE static inline
#endif
typedef long long whole;

#define SLOTS 11
#define HORIZON 10
#define SIDES 2
#define SUPPLIERS 0
#define CONSUMERS 1
#define ROUNDS 20
#define C(x) ((REAL)(x))
#define NOTHING C(NAN)

enum { AS_TOLD, TODAY, NEAREST, NEXT, FULLEST };
enum {
  A_ROWS, A_SEATS, A_HALF, A_PARTNERS, A_FIRST, A_HEARD, A_CELLS, A_REMEMBERED, A_SOME, /* numbers */
  A_SEAT, A_PLACE, A_SIDES, A_RUNNING, A_UNITS, A_PRICE, A_AHEAD, A_FIELDS, A_REACH, A_SIGNED, A_SUMS, A_LATEST, A_GOAL,
  A_KNOWN, A_NUMBER, A_OPTIONS, A_OPTION, A_ALPHA, A_MOVES, A_ROOM, A_CHANCES, A_WHO, A_ALL_UNITS, A_ALL_PRICE,
  A_ALL_AHEAD, A_LEAST, A_MONEY, A_FITS, A_ALL, A_ORDER, A_OP, A_CHOICE, A_QUANTITY, A_WISHED_PRICE, A_WORTH,
  A_AT
};
enum {
  O_OPENING_DAYS, O_SMALL_LOT, O_SMALL_PRICE, O_HOLD, O_LOSS, O_FILL_FIRST, O_WAIT, O_PRICE, O_LOT, O_COUNT, O_LOTS = 10,
  O_PRICES = 20, H_ACCEPT = 30, H_SHADOW, H_LEAST, H_TAKEN, H_OFFERS, H_FEW, H_LEAVING, H_LARGE, H_LOW1, H_LOW2, H_LAST1,
  H_LAST2, H_PRICE_LOW, H_PRICE_EARLY, H_PRICE_HIGH, H_YIELD, H_PATIENT, H_SELDOM, H_HOLD_FROM, H_CHEAP, H_LARGE_REQUEST,
  H_GOOD, H_OPEN_TAKES, H_SMALL_STEP, H_DAY_HIGH, H_DAY_EARLY, H_DAY_HASTY, W_SHADOW, W_PRICE_PATIENT = W_SHADOW + SEEN + 3,
  W_PRICE_HASTY = W_PRICE_PATIENT + SEEN, W_LOT_PATIENT = W_PRICE_HASTY + SEEN, W_LOT_HASTY = W_LOT_PATIENT + SEEN,
  W_HOLD = W_LOT_HASTY + SEEN, W_DAY_PATIENT = W_HOLD + SEEN, W_DAY_HASTY = W_DAY_PATIENT + SEEN,
  O_SIZE = W_DAY_HASTY + SEEN
};

typedef struct {
  const REAL *fields;
  whole seats, seat;
  REAL q_in[SLOTS], q_out[SLOTS], pay, able[SLOTS], sell[SLOTS], bought;
} State;

typedef struct {
  REAL quantity_min, quantity_max, price_min, price_max, first, last;
} Issue;

typedef struct {
  int there[WIDE];
  REAL quantity[WIDE], price[WIDE], day[WIDE]; /* on the table; nan: nothing */
} Side;

typedef struct {
  int order[WIDE], op[WIDE], choice[WIDE];
  REAL quantity[WIDE], price[WIDE];
} Wishes;

INSIDE REAL least_of(REAL a, REAL b) { return a < b ? a : b; }
INSIDE REAL most_of(REAL a, REAL b) { return a > b ? a : b; }
INSIDE REAL between(REAL v, REAL low, REAL high) { return least_of(most_of(v, low), high); }
INSIDE REAL of(const State *s, int field) { return s->fields[field * s->seats + s->seat]; }

/* Places by rising keys, equal ones in their order. */
INSIDE void sorted(const REAL *keys, int count, int *order) {
  for (int i = 0; i < count; i++) {
    int j = i;
    for (; j > 0 && keys[order[j - 1]] > keys[i]; j--) order[j] = order[j - 1];
    order[j] = i;
  }
}

INSIDE void ranks(const int *order, int count, int *rank) {
  for (int i = 0; i < count; i++) rank[order[i]] = i;
}

INSIDE int can_buy(const State *s) { return of(s, F_input_product) != 0; }
INSIDE int can_sell(const State *s) { return of(s, F_output_product) != of(s, F_n_products) - 1; }

/* economic.ability and sell_cap */
INSIDE void look(const whole *a, whole n, State *s) {
  const REAL *table = (const REAL *)a[A_SIGNED];
  whole rows = a[A_ROWS];
  s->fields = (const REAL *)a[A_FIELDS], s->seats = a[A_SEATS], s->seat = ((const whole *)a[A_SEAT])[n];
  s->pay = 0, s->bought = 0;
  const REAL *units = table + n * SIDES * SLOTS, *money = table + (rows + n) * SIDES * SLOTS;
  for (int k = 0; k < SLOTS; k++) {
    s->q_in[k] = units[k], s->q_out[k] = units[SLOTS + k];
    s->bought += units[k], s->pay += money[k];
  }
  REAL lines = of(s, F_n_lines), stock = of(s, F_inventory_input), left = of(s, F_n_steps) - of(s, F_day);
  REAL mean = C(SURE_SHARE) * of(s, F_exogenous_in_mean), supply = of(s, F_exogenous_in_quantity);
  int full = stock >= lines, buys = can_buy(s);
  for (int k = 0; k < SLOTS; k++) {
    REAL held = stock + s->q_in[k], made = least_of(lines, k == 0 ? held + supply : held);
    if (buys) made = k >= 3 && left > REFILL_DAYS ? lines : made;
    else if (k == 0) made = full ? made : 0;
    else made = full || k >= 2 ? lines : least_of(lines, held + mean);
    s->able[k] = k < left ? made : 0;
    s->sell[k] = most_of(0, s->able[k] - s->q_out[k]);
  }
}

INSIDE REAL sales_today(const State *s) {
  return least_of(of(s, F_n_lines), s->q_out[0] + of(s, F_exogenous_out_quantity));
}

INSIDE REAL unreserved(const State *s) {
  return of(s, F_balance) - least_of(C(RESERVE), most_of(0, C(0.1) * of(s, F_initial_balance)));
}

INSIDE Issue issue_of(const State *s, int selling) {
  int at = selling ? F_sell_quantity_min : F_buy_quantity_min;
  REAL price = of(s, selling ? F_price_out : F_price_in), day = of(s, F_day);
  if (of(s, at + 1) >= 1) {
    Issue told = {of(s, at), of(s, at + 1), of(s, at + 2), of(s, at + 3), of(s, at + 4) - day, of(s, at + 5) - day};
    return told;
  }
  REAL lowest = most_of(1, floor(C(0.9) * price)), last = least_of(of(s, F_league_horizon), of(s, F_n_steps) - 1 - day);
  Issue usual = {1, 3 * of(s, F_n_lines), lowest, most_of(lowest, floor(C(1.1) * price)), 0, last};
  return usual;
}

INSIDE void hear(const whole *a, whole n, int side, Side *talks) {
  const whole *place = (const whole *)a[A_PLACE] + (n * SIDES + side) * WIDE;
  int has = ((const unsigned char *)a[A_SIDES])[n * SIDES + side];
  for (int k = 0; k < WIDE; k++) {
    talks->there[k] = has && ((const unsigned char *)a[A_RUNNING])[place[k]];
    int units = talks->there[k] ? ((const int *)a[A_UNITS])[place[k]] : 0;
    talks->quantity[k] = units ? (REAL)units : NOTHING;
    talks->price[k] = units ? (REAL)((const int *)a[A_PRICE])[place[k]] : NOTHING;
    talks->day[k] = units ? (REAL)((const int *)a[A_AHEAD])[place[k]] : NOTHING;
  }
}

/* economic._sell_day, in the first half-round */
INSIDE REAL first_sale_day(const State *s, const Issue *issue) {
  int buys = can_buy(s), ready = buys || of(s, F_inventory_input) >= of(s, F_n_lines), late = 0;
  REAL room[SLOTS], most = -1;
  int best = 0;
  for (int k = 0; k < SLOTS; k++) {
    room[k] = k >= issue->first && k <= issue->last && (k > 0 || ready) ? floor(s->sell[k]) : 0;
    late |= k >= 2 + buys && room[k] >= 1;
  }
  for (int k = 0; k < SLOTS; k++) {
    REAL value = late && k < 2 + buys ? 0 : room[k];
    if (value > most) most = value, best = k;
  }
  return between(most >= 1 ? (REAL)best : 1, 0, most_of(issue->last, 0));
}

/* L4's weights of the threads of both sides */
INSIDE void weigh(const whole *a, const State *s, const Side *talks, REAL *alpha) {
  const REAL *sums = (const REAL *)a[A_SUMS] + s->seat * SIDES * SLOTS * 3;
  const REAL *goal = (const REAL *)a[A_GOAL] + s->seat * 16;
  REAL latest = ((const REAL *)a[A_LATEST])[s->seat], faded = latest > -INFINITY ? exp(C(-FADES) * latest) : 0;
  REAL lines = of(s, F_n_lines), left = of(s, F_n_steps) - of(s, F_day);
  REAL time = (C(a[A_HALF] / 2) + 1) / (ROUNDS + 1), days[SIDES * WIDE], raw[SIDES * WIDE];
  REAL begin[SIDES] = {0, 0};
  if (a[A_HALF] == 0) {
    Issue issue = issue_of(s, 1);
    begin[CONSUMERS] = first_sale_day(s, &issue);
  }
  for (int i = 0; i < SIDES * WIDE; i++) {
    int side = i / WIDE, k = i % WIDE;
    REAL offered = talks[side].day[k], day = between(isnan(offered) ? begin[side] : offered, 0, HORIZON);
    int at = (int)day, bucket = (day > C(2.5)) + (day > C(7.5)) + (day > C(14.5));
    REAL known = sums[(side * SLOTS + at) * 3 + 2] * faded, base = most_of(1, lines * most_of(left - at, 0));
    REAL pressure = between(((side == CONSUMERS ? s->q_out[at] : s->q_in[at]) + known) / base, 0, 1);
    REAL wanted = goal[4 * bucket + 2 * side + 1], price = talks[side].price[k];
    REAL gap = isnan(price) ? 0 : price - wanted;
    REAL closeness = 1 / (1 + 5 * fabs(gap / C(PRICE_NORM))), urgency = 1 / (day + 1);
    raw[i] = between(1 + C(0.5) * (urgency + pressure + time + closeness), C(0.1), 3);
    days[i] = day;
  }
  /* in double precision: threads of equal weight are served by their places, and sums must not make a difference */
  double far[HORIZON + 1], share[SIDES * WIDE], total = 0;
  for (int k = 0; k <= HORIZON; k++) far[k] = exp(-(double)k / REACH);
  for (int i = 0; i < SIDES * WIDE; i++) {
    double conflict = 0;
    for (int j = 0; j < SIDES * WIDE; j++)
      if (j != i && talks[j / WIDE].there[j % WIDE]) conflict += far[abs((int)days[i] - (int)days[j])];
    double wish = talks[i / WIDE].there[i % WIDE] ? (double)raw[i] : 0;
    share[i] = wish / ((double)days[i] + 1) / (1 + conflict);
  }
  for (int i = 0; i < SIDES * WIDE; i++) total += share[i];
  total = total > TINY ? total : TINY;
  for (int i = 0; i < SIDES * WIDE; i++) alpha[i] = (REAL)(share[i] / total);
}

INSIDE void largest_first(const Side *talks, int *order) {
  REAL keys[WIDE];
  for (int k = 0; k < WIDE; k++) keys[k] = isnan(talks->quantity[k]) ? C(INFINITY) : -talks->quantity[k];
  sorted(keys, WIDE, order);
}

INSIDE void accepted_first(const int *accepted, const int *largest, const REAL *alpha, int *order) {
  REAL keys[WIDE];
  int by_size[WIDE], weights[WIDE], by_weight[WIDE];
  for (int k = 0; k < WIDE; k++) keys[k] = -rint(alpha[k] * C(1e9));
  sorted(keys, WIDE, weights);
  ranks(weights, WIDE, by_weight);
  ranks(largest, WIDE, by_size);
  for (int k = 0; k < WIDE; k++) keys[k] = accepted[k] ? by_size[k] - WIDE : by_weight[k];
  sorted(keys, WIDE, order);
}

/* economic.best_purchase: units that earn a last-level factory most */
INSIDE REAL best_purchase(const whole *a, const State *s) {
  const REAL *reach = (const REAL *)a[A_REACH] + s->seat * LINES, prior[LINES] = PRIOR;
  REAL lines = of(s, F_n_lines), stock = of(s, F_inventory_input), bought = s->q_in[0], price_in = of(s, F_price_in);
  REAL sales = of(s, F_exogenous_out_quantity), price_out = of(s, F_price_out), day = of(s, F_day);
  REAL price = sales > 0 ? of(s, F_exogenous_out_price) / sales : price_out;
  REAL gain = price - of(s, F_production_cost) + of(s, F_shortfall_penalty) * price_out;
  REAL storage = of(s, F_storage_cost) * price_in, total[LINES + 1], most = -C(INFINITY);
  int best = 0;
  total[0] = 0;
  REAL sum = 0;
  for (int k = 0; k < LINES; k++) {
    REAL share = (reach[k] + prior[k]) / (day + 1 + PRIOR_SALES);
    sum += share * gain - (1 - share) * storage;
    total[k + 1] = sum;
  }
  REAL left = of(s, F_n_steps) - day - 1, asked = least_of(lines, sales + s->q_out[0]);
  for (int more = 0; more <= 2 * LINES; more++) {
    if (!(more <= 2 * lines)) continue;
    REAL served = least_of(asked, stock + bought + more), over = most_of(0, bought + more - served);
    REAL after = least_of(lines, stock + over), worth = left * total[(int)between(after, 0, LINES)];
    REAL profit = served * gain - more * price_in - storage * (stock + bought + more - served) + worth;
    if (profit > most) most = profit, best = more;
  }
  return best;
}

INSIDE REAL need_of(const whole *a, const State *s) {
  REAL lines = of(s, F_n_lines), stock = of(s, F_inventory_input);
  if (!can_buy(s)) return 0;
  if (!can_sell(s)) return best_purchase(a, s);
  if (of(s, F_n_steps) - of(s, F_day) <= LAST_BUYING_DAYS || stock >= lines) return 0;
  return most_of(0, lines - stock + sales_today(s) - s->q_in[0]);
}

/* Wishes for suppliers */
INSIDE void buy(const whole *a, const State *s, const Side *talks, const Issue *issue, const REAL *alpha, Wishes *w) {
  int largest[WIDE], accepted[WIDE], count = 0, place = -1;
  largest_first(talks, largest);
  REAL need = need_of(a, s), spare = need >= SPARE_NEED ? 1 : 0, useful = of(s, F_n_lines) - of(s, F_inventory_input);
  useful = useful - s->bought + sales_today(s);
  REAL room = most_of(0, useful), budget = most_of(0, unreserved(s) - s->pay), round = C(a[A_HALF] / 2);
  for (int i = 0; i < WIDE; i++) {
    int k = largest[i];
    REAL units = talks->quantity[k], money = units * talks->price[k];
    int takes = talks->day[k] == 0 && need >= 1 && units <= least_of(need + spare, room) && money <= budget;
    if (takes) need -= units, room -= units, budget -= money;
    accepted[k] = takes && talks->there[k];
  }
  accepted_first(accepted, largest, alpha, w->order);
  need = floor(most_of(0, need));
  for (int k = 0; k < WIDE; k++) count += talks->there[k] && !accepted[k];
  REAL parts = most_of(1, count), each = floor(need / parts), rest = need - floor(need / parts) * parts;
  for (int i = 0; i < WIDE; i++) {
    int k = w->order[i], mine = talks->there[k] && !accepted[k];
    place += mine;
    REAL share = need >= count ? each + (place < rest) : (place < 2 * need);
    w->quantity[k] = mine ? share : 0;
    w->op[k] = accepted[k] ? ACCEPT : w->quantity[k] >= 1 ? REJECT : END;
    w->price[k] = round >= RAISE_ROUND ? issue->price_max : issue->price_min;
    w->choice[k] = AS_TOLD;
  }
}

INSIDE REAL known_of(const whole *a, whole number, int field, int k) {
  return ((const REAL *)a[A_KNOWN])[(field * a[A_PARTNERS] + number) * WIDE + k];
}

INSIDE int held_days(const State *s, const REAL *o) {
  int filling = can_buy(s) && of(s, F_inventory_input) < of(s, F_n_lines);
  return filling && of(s, F_n_steps) - of(s, F_day) > REFILL_DAYS && o[O_FILL_FIRST] > 0 ? FILLING_DAYS : 0;
}

INSIDE const REAL *options_of(const whole *a, const State *s) {
  const whole *number = (const whole *)a[A_OPTION];
  return (const REAL *)a[A_OPTIONS] + (number ? number[s->seat] : 0) * O_SIZE;
}

INSIDE int is_patient(const whole *a, whole number, int k, REAL round, const REAL *o) {
  REAL met = least_of(known_of(a, number, R_patience_count, k), LATEST);
  REAL left = known_of(a, number, R_left, k), offers = known_of(a, number, R_offers, k);
  if (met > 0 && known_of(a, number, R_patience, k) >= C(PATIENT_MEAN) * met) return 1;
  return (left + 1) / (offers - known_of(a, number, R_taken, k) + 2) < o[H_SELDOM] || round >= o[H_PATIENT];
}

/* What habits look at: the factory's days, the round, the partner */
INSIDE void shared_context(const State *s, const Side *talks, REAL round, REAL low, REAL high, REAL cost, REAL *c) {
  REAL lines = of(s, F_n_lines), near = 0, used = 0, far = 0;
  int there = 0;
  for (int k = 0; k < SLOTS; k++) {
    if (k < 2) near += s->q_out[k];
    if (k >= 1 && k < 6) used += s->q_out[k];
    if (k >= 6) far += s->q_out[k];
  }
  for (int k = 0; k < WIDE; k++) there += talks->there[k];
  c[0] = least_of(near / (2 * lines), 1) - C(0.5);
  c[1] = least_of(used / (5 * lines), 1) - C(0.5);
  c[2] = least_of(far / (5 * lines), 1) - C(0.25);
  c[3] = of(s, F_day) / of(s, F_n_steps) - C(0.5);
  c[4] = round / ROUNDS - C(0.3);
  c[5] = C(there) / 8 - C(0.5);
  c[6] = (low - cost) / most_of(high, 1) - C(0.5);
}

INSIDE void partner_context(const whole *a, whole number, int k, REAL round, REAL *c) {
  REAL high = known_of(a, number, R_patient_highest, k), low = known_of(a, number, R_patient_lowest, k);
  REAL taken = known_of(a, number, R_taken, k), offered = known_of(a, number, R_offers, k) + round;
  c[7] = high / (high + low + 1) - C(0.25);
  c[8] = (taken + C(0.3)) / (offered + 6) - C(0.1);
  c[9] = (known_of(a, number, R_left, k) + 1) / (offered - taken + 2) - C(0.3);
  c[10] = least_of((known_of(a, number, R_taken_units, k) + 3) / (taken + C(0.3)) / 10, 2) - C(0.6);
}

INSIDE REAL dot(const REAL *w, const REAL *c, int count) {
  REAL sum = 0;
  for (int i = 0; i < count; i++) sum += w[i] * c[i];
  return sum;
}

/* Wishes for consumers; `worth` of waiting, nan: not known */
INSIDE void sell(
    const whole *a, const State *s, const Side *talks, const Issue *issue, const REAL *alpha, const REAL *worth,
    const REAL *o, Wishes *w) {
  whole number = ((const whole *)a[A_NUMBER])[s->seat];
  REAL round = C(a[A_HALF] / 2), cost = of(s, F_production_cost), low = issue->price_min, high = issue->price_max;
  REAL room[SLOTS];
  int opening = of(s, F_day) < o[O_OPENING_DAYS], held = held_days(s, o), turn = (int)(a[A_HALF] / 2) % 3;
  int largest[WIDE], accepted[WIDE], patient[WIDE], count = (int)o[O_COUNT];
  for (int k = 0; k < SLOTS; k++) room[k] = k < held ? 0 : s->sell[k];
  largest_first(talks, largest);
  REAL c[SEEN + 3];
  shared_context(s, talks, round, low, high, cost, c);
  for (int i = 0; i < WIDE; i++) {
    int k = largest[i];
    REAL units = talks->quantity[k], price = talks->price[k], day = talks->day[k];
    patient[k] = is_patient(a, number, k, round, o), accepted[k] = 0;
    if (!talks->there[k] || !(day >= 0 && day < SLOTS)) continue;
    partner_context(a, number, k, round, c);
    c[SEEN] = (price - low) / most_of(high - low, 1) - C(0.5), c[SEEN + 1] = units / 10 - C(0.4);
    c[SEEN + 2] = day / HORIZON - C(0.3);
    int large_and_cheap = day == 0 && units >= o[H_LARGE_REQUEST] && price < low + o[H_CHEAP] * (high - low);
    REAL late = most_of(10, known_of(a, number, R_late_offers, k));
    int stays = known_of(a, number, R_late_left, k) <= C(RARELY) * late;
    int later = large_and_cheap && round >= o[H_HOLD_FROM] && round < o[O_HOLD] + dot(o + W_HOLD, c, SEEN) && stays;
    REAL shadow = o[H_SHADOW] + dot(o + W_SHADOW, c, SEEN + 3);
    int wanted = units * (price - cost - shadow * (high - low)) >= worth[k] * exp(o[H_ACCEPT]);
    if (isnan(worth[k])) {
      int good = price >= high && units >= o[H_GOOD];
      wanted = good || (!patient[k] && (!opening || round >= 1 || units >= o[H_OPEN_TAKES]));
    }
    accepted[k] = !later && wanted && units <= room[(int)day];
    if (accepted[k]) room[(int)day] -= units;
  }
  for (int k = 0; k < WIDE; k++) {
    REAL highest = known_of(a, number, R_patient_highest, k), lowest = known_of(a, number, R_patient_lowest, k);
    REAL quantity, price;
    int choice;
    partner_context(a, number, k, round, c);
    if (patient[k]) {
      int pays_highest = highest >= most_of(1, lowest), pays_lowest = !pays_highest && lowest >= 2 && highest == 0;
      int last = !pays_highest && !pays_lowest && !(round < o[H_YIELD]);
      quantity = pays_lowest && turn == 1 ? o[H_LOW1] : pays_lowest && turn == 2 ? o[H_LOW2] : o[H_LARGE];
      if (last && turn) quantity = turn == 1 ? o[H_LAST1] : o[H_LAST2];
      quantity = between(rint(quantity + dot(o + W_LOT_PATIENT, c, SEEN)), 1, C(LARGE_LOT));
      int now = (pays_lowest && turn == 2) || (last && turn == 1);
      REAL at = pays_lowest || last ? o[H_PRICE_LOW] : pays_highest ? o[H_PRICE_HIGH] : o[H_PRICE_EARLY];
      price = low + between(at + dot(o + W_PRICE_PATIENT, c, SEEN), 0, 1) * (high - low);
      REAL far = dot(o + W_DAY_PATIENT, c, SEEN) + (pays_highest ? o[H_DAY_HIGH] : o[H_DAY_EARLY]);
      choice = now ? TODAY : far > C(0.5) ? FULLEST : far < C(-0.5) ? NEAREST : NEXT;
    } else {
      int at = round < count - 1 ? (int)round : count - 1;
      quantity = opening ? o[O_LOTS + at] : o[O_SMALL_LOT] - o[H_SMALL_STEP] * round;
      quantity = between(rint(quantity + dot(o + W_LOT_HASTY, c, SEEN)), 1, C(LARGE_LOT));
      REAL position = (opening ? o[O_PRICES + at] : o[O_SMALL_PRICE]) + dot(o + W_PRICE_HASTY, c, SEEN);
      price = low + between(position, 0, 1) * (high - low);
      int only_today = known_of(a, number, R_heard_count, k) > 0 && known_of(a, number, R_heard_ahead, k) == 0;
      REAL far = o[H_DAY_HASTY] + dot(o + W_DAY_HASTY, c, SEEN);
      choice = !opening && only_today ? TODAY : far > C(0.5) ? FULLEST : far < C(-0.5) ? NEAREST : NEXT;
    }
    if (!isnan(o[O_PRICE])) price = low + o[O_PRICE] * (high - low);
    REAL least = ceil((isnan(worth[k]) ? 0 : worth[k] * exp(o[H_LEAST])) / most_of(1, price - cost));
    if (!(quantity >= least)) quantity = least_of(C(LARGE_LOT), least);
    if (o[O_LOT] > 0) quantity = o[O_LOT];
    w->quantity[k] = quantity, w->price[k] = price, w->choice[k] = choice, w->op[k] = accepted[k] ? ACCEPT : REJECT;
  }
  accepted_first(accepted, largest, alpha, w->order);
}

/* plan.chosen_day among days with `room` */
INSIDE int sale_day(REAL quantity, int choice, const REAL *room, REAL most) {
  REAL wanted = least_of(quantity, most), least = C(INFINITY);
  int nearest = -1, following = -1, fullest = 0;
  for (int k = 0; k < SLOTS; k++) {
    if (!(room[k] >= wanted)) continue;
    if (nearest < 0) nearest = k;
    if (k > 0 && following < 0) following = k;
    if (room[k] <= least) least = room[k], fullest = k;
  }
  if (nearest < 0) nearest = 0, fullest = SLOTS - 1;
  if (following < 0) following = nearest;
  if (choice == TODAY && room[0] >= 1) return 0;
  return choice == NEAREST ? nearest : choice == NEXT ? following : fullest;
}

/* plan.plan: answers in the wished order, each within what the ones before have left */
INSIDE void serve(
    const whole *a, whole n, const State *s, int selling, int held, const Side *talks, const Issue *issue,
    const Wishes *w) {
  int *moves = (int *)a[A_MOVES] + (n * SIDES + selling) * WIDE;
  whole part = a[A_ROWS] * SIDES * WIDE;
  REAL planned[SLOTS], bought = 0, money = 0, cap[SLOTS], room[SLOTS], free_money = unreserved(s);
  REAL useful = of(s, F_n_lines) - of(s, F_inventory_input), smallest = most_of(issue->quantity_min, 1);
  useful = useful - s->bought + sales_today(s);
  for (int k = 0; k < SLOTS; k++) planned[k] = 0;
  for (int i = 0; i < WIDE; i++) {
    int k = w->order[i];
    if (!talks->there[k]) {
      moves[k] = END, moves[part + k] = moves[2 * part + k] = moves[3 * part + k] = 0;
      continue;
    }
    REAL budget = most_of(0, free_money - (s->pay + money)), most = 0, best = -1;
    int any = 0, fullest = 0;
    for (int d = 0; d < SLOTS; d++) {
      if (selling) cap[d] = most_of(0, s->able[d] - (s->q_out[d] + planned[d]));
      else cap[d] = d == 0 ? most_of(0, useful - bought) : 0;
      int on_offer = d >= issue->first && d <= issue->last, open = cap[d] >= 1 && on_offer;
      room[d] = on_offer && d >= held ? floor(cap[d]) : 0;
      most = d == 0 || room[d] > most ? room[d] : most;
      any |= open;
      if ((open ? cap[d] : -1) > best) best = open ? cap[d] : -1, fullest = d;
    }
    REAL quantity = talks->quantity[k], price = talks->price[k], day = talks->day[k], wish = w->quantity[k];
    int legal = quantity >= issue->quantity_min && quantity <= issue->quantity_max && price >= issue->price_min;
    legal = legal && price <= issue->price_max && day >= 0 && day < SLOTS && day >= issue->first && day <= issue->last;
    int accepts = w->op[k] == ACCEPT, accepted = accepts && legal && quantity <= cap[legal ? (int)day : 0];
    if (!selling) accepted = accepted && quantity * price <= budget;
    int ends = w->op[k] == END, nothing = wish < C(1 - 1e-9), to = 0;
    if (selling) {
      to = sale_day(wish, w->choice[k], room, most);
      if (most < 1) ends |= !accepts, nothing = 1;
    }
    if (!(cap[to] >= 1 && to >= issue->first && to <= issue->last)) to = fullest;
    REAL whole_price = between(w->price[k], issue->price_min, issue->price_max);
    whole_price = selling ? ceil(whole_price - C(1e-9)) : floor(whole_price + C(1e-9));
    whole_price = between(whole_price, issue->price_min, issue->price_max);
    REAL bound = least_of(cap[to], issue->quantity_max);
    if (!selling) bound = least_of(bound, budget / most_of(whole_price, C(1e-9)));
    REAL cut = most_of(0, floor(least_of(wish + C(1e-9), bound)));
    int offers = !(accepted || ends || nothing || !any || cut < smallest);
    REAL units = accepted ? quantity : offers ? cut : 0, each = accepted ? price : offers ? whole_price : 0;
    int ahead = accepted ? (int)day : offers ? to : 0;
    planned[ahead] += units, bought += units, money += units * each;
    moves[k] = accepted ? ACCEPT : offers ? REJECT : END;
    moves[part + k] = (int)units, moves[2 * part + k] = (int)each, moves[3 * part + k] = ahead;
  }
}

INSIDE void answer_suppliers(const whole *a, whole n) {
  State s;
  Side talks[SIDES];
  Wishes wishes;
  REAL alpha[SIDES * WIDE], *out = (REAL *)a[A_ALPHA] + n * SIDES * WIDE, round = C(a[A_HALF] / 2);
  look(a, n, &s);
  int some[SIDES] = {0, 0};
  for (int side = 0; side < SIDES; side++) {
    hear(a, n, side, &talks[side]);
    for (int k = 0; k < WIDE; k++) some[side] |= talks[side].there[k];
  }
  weigh(a, &s, talks, alpha);
  for (int i = 0; i < SIDES * WIDE; i++) out[i] = alpha[i];
  if (some[SUPPLIERS]) {
    Issue issue = issue_of(&s, 0);
    buy(a, &s, &talks[SUPPLIERS], &issue, alpha, &wishes);
    serve(a, n, &s, 0, 0, &talks[SUPPLIERS], &issue, &wishes);
  }
  if (!some[CONSUMERS] || !a[A_KNOWN]) return;
  const REAL *o = options_of(a, &s);
  whole number = ((const whole *)a[A_NUMBER])[s.seat], part = a[A_ROWS] * WIDE;
  Issue issue = issue_of(&s, 1);
  REAL *room = (REAL *)a[A_ROOM] + n * SLOTS, *chances = (REAL *)a[A_CHANCES] + n * WIDE, most = 0;
  REAL cost = of(&s, F_production_cost);
  int held = held_days(&s, o);
  for (int k = 0; k < SLOTS; k++) {
    room[k] = k < held ? 0 : s.sell[k];
    most = k == 0 || room[k] > most ? room[k] : most;
  }
  for (int k = 0; k < WIDE; k++) {
    REAL taken = known_of(a, number, R_taken, k), offered = known_of(a, number, R_offers, k) + round;
    REAL lot = (known_of(a, number, R_taken_units, k) + C(LARGE_LOT) * o[H_TAKEN]) / (taken + o[H_TAKEN]);
    int high = known_of(a, number, R_patient_highest, k) >= known_of(a, number, R_patient_lowest, k);
    chances[k] = (taken + o[H_TAKEN]) / (offered + o[H_OFFERS]);
    chances[part + k] = least_of(lot, most) * ((high ? issue.price_max : issue.price_min) - cost);
    REAL leaves = (known_of(a, number, R_left, k) + 1) / (offered - taken + 2);
    chances[2 * part + k] = least_of(1, most_of(o[O_LOSS], leaves * exp(o[H_LEAVING])));
  }
}

/* bargain.worth_waiting for one thread */
INSIDE REAL worth_of(const whole *a, const State *s, whole j, whole n, int k, const REAL *o, const REAL *room) {
  whole at = ((const whole *)a[A_PLACE])[(n * SIDES + CONSUMERS) * WIDE + k], size = a[A_REMEMBERED];
  whole mine = (a[A_AT] ? ((const whole *)a[A_AT])[j] : j) * WIDE + k;
  whole part = a[A_ROWS] * WIDE;
  if (!(o[O_WAIT] > 0)) return 0;
  const REAL *least = (const REAL *)a[A_LEAST] + mine * size, *chances = (const REAL *)a[A_CHANCES] + n * WIDE + k;
  const REAL *money = (const REAL *)a[A_MONEY] + mine * (size + 1), *fits = (const REAL *)a[A_FITS] + mine * (size + 1);
  REAL brings[ROUNDS], cost = of(s, F_production_cost), before = ((const REAL *)a[A_ALL])[mine], count = before;
  int heard = 0, left = ROUNDS - 1 - (int)(a[A_HALF] / 2);
  for (int t = 0; t < a[A_HEARD]; t++) {
    whole cell = (a[A_FIRST] + 2 * t) * a[A_CELLS] + at;
    int units = ((const int *)a[A_ALL_UNITS])[cell];
    if (!units) continue;
    int day = ((const int *)a[A_ALL_AHEAD])[cell], fitting = day < SLOTS && units <= room[day < SLOTS ? day : HORIZON];
    brings[heard++] = fitting ? units * ((REAL)((const int *)a[A_ALL_PRICE])[cell] - cost) : 0;
    count += 1;
  }
  if (!(count >= o[H_FEW])) return NOTHING;
  REAL taken = chances[0], sure = taken * chances[part], worth = 0, all_fits = fits[size];
  REAL going_on = (1 - taken) * (1 - chances[2 * part]) / most_of(1, count);
  for (int done = 0; done < left; done++) {
    whole low = 0, high = size;
    while (low < high) {
      whole middle = (low + high) / 2;
      if (least[middle] < -worth) low = middle + 1;
      else high = middle;
    }
    REAL best = money[low] + worth * (all_fits - fits[low]) + most_of(worth, 0) * (before - all_fits), now = 0;
    for (int t = 0; t < heard; t++) now += most_of(brings[t], worth);
    best = best + now;
    worth = sure + going_on * best;
  }
  return worth;
}

/* Weighs waiting and wishes; returns the row. */
INSIDE whole wish(const whole *a, whole j, State *s, Side *talks, Issue *issue, Wishes *wishes, REAL *worth) {
  whole n = ((const whole *)a[A_WHO])[j];
  look(a, n, s);
  hear(a, n, CONSUMERS, talks);
  const REAL *o = options_of(a, s), *room = (const REAL *)a[A_ROOM] + n * SLOTS;
  *issue = issue_of(s, 1);
  for (int k = 0; k < WIDE; k++) worth[k] = talks->there[k] ? worth_of(a, s, j, n, k, o, room) : NOTHING;
  sell(a, s, talks, issue, (const REAL *)a[A_ALPHA] + (n * SIDES + CONSUMERS) * WIDE, worth, o, wishes);
  return n;
}

INSIDE void answer_consumers(const whole *a, whole j) {
  State s;
  Side talks;
  Issue issue;
  Wishes wishes;
  REAL worth[WIDE];
  whole n = wish(a, j, &s, &talks, &issue, &wishes, worth);
  serve(a, n, &s, 1, held_days(&s, options_of(a, &s)), &talks, &issue, &wishes);
}

INSIDE void tell_wishes(const whole *a, whole j) {
  State s;
  Side talks;
  Issue issue;
  Wishes wishes;
  REAL worth[WIDE];
  wish(a, j, &s, &talks, &issue, &wishes, worth);
  for (int k = 0; k < WIDE; k++) {
    whole at = j * WIDE + k;
    ((whole *)a[A_ORDER])[at] = wishes.order[k], ((whole *)a[A_OP])[at] = wishes.op[k];
    ((whole *)a[A_CHOICE])[at] = wishes.choice[k], ((REAL *)a[A_QUANTITY])[at] = wishes.quantity[k];
    ((REAL *)a[A_WISHED_PRICE])[at] = wishes.price[k], ((REAL *)a[A_WORTH])[at] = worth[k];
  }
}

/* Memory._add: offers of some half-rounds into what a seat knows */
enum {
  N_SEATS, N_FROM, N_TO, N_YESTERDAY, N_CELLS, N_ALL_CELLS, N_LEVELS, /* numbers */
  N_INDEX, N_SIDES, N_CALLS, N_UNITS, N_PRICE, N_AHEAD, N_SPOT, N_DAY, N_SUMS, N_LATEST
};

INSIDE void note_offers(const whole *a, whole seat) {
  whole seats = a[N_LEVELS] * WIDE, world = seat / seats, here = seat % seats, level = here / WIDE;
  int yesterday = (int)a[N_YESTERDAY];
  REAL latest = ((const REAL *)a[N_LATEST])[seat];
  if (yesterday && ((const int *)a[N_DAY])[world] <= 0) return;
  for (int side = 0; side < SIDES; side++) {
    if (!((const unsigned char *)a[N_SIDES])[level * SIDES + side]) continue;
    const whole *index = (const whole *)a[N_INDEX] + (here * SIDES + side) * WIDE;
    int calls = ((const unsigned char *)a[N_CALLS])[level * SIDES + side];
    REAL spot = most_of(((const REAL *)a[N_SPOT])[world * (a[N_LEVELS] + 1) + level + side], 1); /* of what is traded */
    REAL *sums = (REAL *)a[N_SUMS] + (seat * SIDES + side) * SLOTS * 3;
    for (whole half = a[N_FROM]; half < a[N_TO]; half++) {
      int mine = (half % 2 == 0) == calls, heard = mine || half < 2 * ROUNDS - 1;
      REAL clock = C((half + !mine) / 2) - ROUNDS * yesterday, age = exp(C(FADES) * clock);
      for (int k = 0; k < WIDE; k++) {
        whole cell = half * a[N_ALL_CELLS] + world * a[N_CELLS] + index[k];
        int lot = ((const int *)a[N_UNITS])[cell];
        if (lot <= 0) continue;
        REAL units = lot, price = ((const int *)a[N_PRICE])[cell], day = ((const int *)a[N_AHEAD])[cell];
        REAL trust = sqrt(units / (units + 10));
        if (yesterday) day = day - 1, trust = day >= 0 ? trust : 0;
        REAL weight = age * (heard ? trust : 0);
        REAL good = between(side == CONSUMERS ? price / spot : spot / most_of(price, 1), C(0.5), 2);
        REAL *into = sums + (int)between(day, 0, HORIZON) * 3;
        into[0] += weight, into[1] += weight * price, into[2] += weight * units * good;
        if (heard && clock > latest) latest = clock;
      }
    }
  }
  ((REAL *)a[N_LATEST])[seat] = latest;
}

#ifdef __CUDACC__
#define EVERY(name, count, each) \
  extern "C" __global__ void name(const whole *a) { \
    whole i = (whole)blockIdx.x * blockDim.x + threadIdx.x; \
    if (i < a[count]) each(a, i); \
  }
#else
#define EVERY(name, count, each) \
  void name(const whole *a) { \
    for (whole i = 0; i < a[count]; i++) each(a, i); \
  }
#endif
EVERY(suppliers, A_ROWS, answer_suppliers)
EVERY(consumers, A_SOME, answer_consumers)
EVERY(wishes, A_SOME, tell_wishes)
EVERY(note, N_SEATS, note_offers)
