(** * The forward pass of one network

    Step 3 of the chapter, for the weights of [Weights.v] and in exact arithmetic: in every context of the list the
    right token has the largest logit. So its greedy decoding adds all numbers.

    Arithmetic is that of any ordered field, of which the real numbers are one. It needs no axiom to reason about them
    all, while the real numbers of the standard library are built on some. What an exponential is cannot be said in
    every ordered field: [e] and [e_sink] are any numbers within the enclosures of [Weights.v]. That the exponentials
    are among these is not proven here; nor is what rounding to float32 makes of the logits. *)

From Coq Require Import Ring Field Qcanon.
From Adder Require Export Adder Weights.
Open Scope Z_scope.

(** ** Ordered fields *)

Record ordered_field := {
  carrier :> Type;
  zero : carrier;
  one : carrier;
  plus : carrier -> carrier -> carrier;
  times : carrier -> carrier -> carrier;
  minus : carrier -> carrier -> carrier;
  opposite : carrier -> carrier;
  divide : carrier -> carrier -> carrier;
  inverse : carrier -> carrier;
  at_most : carrier -> carrier -> Prop;
  laws : field_theory zero one plus times minus opposite divide inverse eq;
  at_most_trans : forall a b c, at_most a b -> at_most b c -> at_most a c;
  at_most_antisym : forall a b, at_most a b -> at_most b a -> a = b;
  compare : forall a b, {at_most a b} + {at_most b a};
  plus_at_most : forall a b c, at_most a b -> at_most (plus a c) (plus b c);
  times_at_least_zero : forall a b, at_most zero a -> at_most zero b -> at_most zero (times a b) }.

Arguments zero {_}.
Arguments one {_}.
Arguments plus {_}.
Arguments times {_}.
Arguments minus {_}.
Arguments opposite {_}.
Arguments divide {_}.
Arguments inverse {_}.
Arguments at_most {_}.
Arguments compare {_}.

Declare Scope field_scope.
Delimit Scope field_scope with F.
Infix "+" := plus : field_scope.
Infix "*" := times : field_scope.
Infix "-" := minus : field_scope.
Infix "/" := divide : field_scope.
Infix "<=" := at_most : field_scope.

Definition less {K : ordered_field} (a b : K) : Prop := at_most a b /\ a <> b.
Infix "<" := less : field_scope.

(** An integer, and an integer times 2^-[bits]. *)
Definition of_Z {K : ordered_field} : Z -> K := gen_phiZ zero one plus times opposite.

Definition dyadic {K : ordered_field} (bits m : Z) : K := (of_Z m / of_Z (2 ^ bits))%F.

(** ** The network *)

Section Forward.

Variable K : ordered_field.
Open Scope F.

Definition vector : Type := K * K.

Definition weight (m : Z) : K := dyadic weight_bits m.

Definition weights (m : Z * Z) : vector := (weight (fst m), weight (snd m)).

Definition add (u v : vector) : vector := (fst u + fst v, snd u + snd v).

Definition scale (a : K) (v : vector) : vector := (a * fst v, a * snd v).

Definition dot (u v : vector) : K := fst u * fst v + snd u * snd v.

(** A matrix, given by its rows, times a vector. *)
Definition apply (rows : (Z * Z) * (Z * Z)) (v : vector) : vector :=
  (dot (weights (fst rows)) v, dot (weights (snd rows)) v).

Definition relu (a : K) : K := if compare zero a then a else zero.

(** The exponentials of scores, by number and distance, and that of the sink's score. *)
Variable e : nat -> nat -> K.
Variable e_sink : K.

Definition residual (number : nat) (t : token) : vector :=
  add (weights (embedding t)) (weights (number_embedding number)).

Definition value_vector (number : nat) (t : token) : vector :=
  add (apply value_weight (residual number t)) (weights value_bias).

Definition normaliser (keys : list key) : K :=
  fold_right (fun '(n, d, _) rest => e n d + rest) e_sink keys.

Definition attention (keys : list key) : vector :=
  fold_right (fun '(n, d, t) rest => add (scale (e n d / normaliser keys) (value_vector n t)) rest)
             (zero, zero) keys.

(** The token [t] asks, which stands in number [n]. *)
Definition middle (n : nat) (t : token) (keys : list key) : vector :=
  add (residual n t) (apply out_weight (attention keys)).

Definition neurons (x : vector) : vector :=
  let y := add (apply neuron_in x) (weights neuron_in_bias) in (relu (fst y), relu (snd y)).

Definition after_neurons (x : vector) : vector :=
  add x (add (apply neuron_out (neurons x)) (weights neuron_out_bias)).

Definition logit (n : nat) (asking : token) (keys : list key) : token -> K :=
  let x := after_neurons (middle n asking keys) in
  fun t => dot (weights (unembedding t)) x + weight (unembedding_bias t).

(** The logits after a text: its last token asks all that the mask leaves visible. *)
Definition logits (x : text) : token -> K :=
  let '(n, _, asking) := last (addresses 0 0 x) (0%nat, 0%nat, End) in logit n asking (visible x).

(** A token that has the largest logit; if several have it, [compare] decides. *)
Definition vocabulary : list token := map Digit all_digits ++ [Minus; Plus; Times; Equals; End].

Definition largest (of : token -> K) : token :=
  fold_left (fun best t => if compare (of t) (of best) then best else t) vocabulary (Digit d0).

Definition next_token (x : text) : token := largest (logits x).

(** What is supposed of the exponentials. *)
Definition within (ends : Z * Z) (a : K) : Prop := dyadic exp_bits (fst ends) <= a /\ a <= dyadic exp_bits (snd ends).

Definition enclosed : Prop := (forall n d, within (exp_near n d) (e n d)) /\ within exp_sink e_sink.

End Forward.

(** The same of a context, whose own token is the last one written. *)
Definition asks (c : context) : token := match written_here c with Some t => t | None => End end.

Definition context_logit (K : ordered_field) e e_sink (c : context) : token -> K :=
  logit K e e_sink 2 (asks c) (keys_of c).

(** ** The same with intervals

    Two integers enclose a number of the network, if it is first multiplied by [s]: the normaliser, so that nothing has
    to be divided, and 2^[exp_bits]. What is rounded is rounded outwards. *)

Definition interval : Type := Z * Z.

Definition both (i j : interval) : interval := (fst i + fst j, snd i + snd j).

Definition down (bits a : Z) : Z := Z.shiftr a bits.

Definition up (bits a : Z) : Z := - Z.shiftr (- a) bits.

(** [i] times [m] 2^-[bits]. *)
Definition product (bits m : Z) (i : interval) : interval :=
  if 0 <=? m then (down bits (m * fst i), up bits (m * snd i)) else (down bits (m * snd i), up bits (m * fst i)).

Definition positive_part (i : interval) : interval := (Z.max 0 (fst i), Z.max 0 (snd i)).

Definition weight_product : Z -> interval -> interval := product weight_bits.

Definition dot_in (row : Z * Z) (v : interval * interval) : interval :=
  both (weight_product (fst row) (fst v)) (weight_product (snd row) (snd v)).

Definition apply_in (rows : (Z * Z) * (Z * Z)) (v : interval * interval) : interval * interval :=
  (dot_in (fst rows) v, dot_in (snd rows) v).

Definition add_in (u v : interval * interval) : interval * interval := (both (fst u) (fst v), both (snd u) (snd v)).

(** Weights, where [one] encloses 1. *)
Definition weights_in (one : interval) (m : Z * Z) : interval * interval :=
  (weight_product (fst m) one, weight_product (snd m) one).

Definition sum_of_pairs (u v : Z * Z) : Z * Z := (fst u + fst v, snd u + snd v).

Definition residual_units (n : nat) (t : token) : Z * Z := sum_of_pairs (embedding t) (number_embedding n).

Definition dot_units (u v : Z * Z) : Z := fst u * fst v + snd u * snd v.

(** Of the value of a token, in units of 4^-[weight_bits]; this is exact. *)
Definition value_units (n : nat) (t : token) : Z * Z :=
  let x := residual_units n t in
  (dot_units (fst value_weight) x + 2 ^ weight_bits * fst value_bias,
   dot_units (snd value_weight) x + 2 ^ weight_bits * snd value_bias).

Definition normaliser_in (keys : list key) : interval :=
  fold_right (fun '(n, d, _) rest => both (exp_near n d) rest) exp_sink keys.

(** What a key adds, by number, distance and token; looked up, since these are few. *)
Definition said (n d : nat) (t : token) : interval * interval :=
  let v := value_units n t in
  (product (2 * weight_bits) (fst v) (exp_near n d), product (2 * weight_bits) (snd v) (exp_near n d)).

Definition all_said : list (list (list (interval * interval))) :=
  Eval vm_compute in map (fun n => map (fun d => map (said n d) vocabulary) [0; 1]%nat) [0; 1; 2; 3]%nat.

Definition place_of_token (t : token) : nat :=
  match t with Digit d => value d | Minus => 10 | Plus => 11 | Times => 12 | Equals => 13 | End => 14 end.

Definition look_up (n d : nat) (t : token) : interval * interval :=
  let n := match n with 0 | 1 | 2 => n | _ => 3 end%nat in
  let d := match d with 0 => 0 | _ => 1 end%nat in
  nth (place_of_token t) (nth d (nth n all_said []) []) ((0, 0), (0, 0)).

Definition attention_in (keys : list key) : interval * interval :=
  fold_right (fun '(n, d, t) rest => add_in (look_up n d t) rest) ((0, 0), (0, 0)) keys.

Definition middle_in (one : interval) (n : nat) (t : token) (keys : list key) : interval * interval :=
  add_in (weights_in one (residual_units n t)) (apply_in out_weight (attention_in keys)).

Definition neurons_in (one : interval) (x : interval * interval) : interval * interval :=
  let y := add_in (apply_in neuron_in x) (weights_in one neuron_in_bias) in
  (positive_part (fst y), positive_part (snd y)).

Definition after_neurons_in (one : interval) (x : interval * interval) : interval * interval :=
  add_in x (add_in (apply_in neuron_out (neurons_in one x)) (weights_in one neuron_out_bias)).

(** At least this is [m] times what [i] encloses. *)
Definition least (m : Z) (i : interval) : Z := m * (if 0 <=? m then fst i else snd i).

(** At least so much does the logit of [t] lead that of [u], in units of [s] 2^-[weight_bits]. *)
Definition lead (one : interval) (x : interval * interval) (t u : token) : Z :=
  least (fst (unembedding t) - fst (unembedding u)) (fst x) +
  least (snd (unembedding t) - snd (unembedding u)) (snd x) +
  least (unembedding_bias t - unembedding_bias u) one.

Definition same_token (t u : token) : bool :=
  match t, u with
  | Digit d, Digit e => (value d =? value e)%nat
  | Minus, Minus | Plus, Plus | Times, Times | Equals, Equals | End, End => true
  | _, _ => false
  end.

Definition leads (entry : context * token) : bool :=
  let '(c, t) := entry in
  let keys := keys_of c in
  let one := normaliser_in keys in
  let x := after_neurons_in one (middle_in one 2 (asks c) keys) in
  (0 <? fst one) && forallb (fun u => same_token t u || (0 <? lead one x t u)) vocabulary.

(** The computation, which ends with the first entry that fails. *)
Lemma none_fails : find (fun entry => negb (leads entry)) table = None.
Proof. vm_cast_no_check (eq_refl (@None (context * token))). Qed.

(** ** Ordered fields, a little *)

Section Order.

Variable K : ordered_field.
Open Scope F.

Add Field field_of_K : (laws K).

Lemma at_most_refl : forall a : K, a <= a.
Proof. intro a. now destruct (compare a a). Qed.

Lemma plus_both : forall a b c d : K, a <= b -> c <= d -> a + c <= b + d.
Proof.
  intros a b c d first second. apply at_most_trans with (b + c); [now apply plus_at_most |].
  replace (b + c) with (c + b) by ring. replace (b + d) with (d + b) by ring. now apply plus_at_most.
Qed.

Lemma minus_at_most : forall a b : K, a <= b <-> zero <= b - a.
Proof.
  intros a b. split; intro known.
  - replace zero with (a + opposite a) by ring. replace (b - a) with (b + opposite a) by ring.
    now apply plus_at_most.
  - replace a with (zero + a) by ring. replace b with (b - a + a) at 1 by ring. now apply plus_at_most.
Qed.

Lemma times_at_most : forall a b c : K, zero <= c -> a <= b -> c * a <= c * b.
Proof.
  intros a b c sign known. apply minus_at_most. replace (c * b - c * a) with (c * (b - a)) by ring.
  apply times_at_least_zero; trivial. now apply minus_at_most in known.
Qed.

Lemma times_negative : forall a b c : K, c <= zero -> a <= b -> c * b <= c * a.
Proof.
  intros a b c sign known. apply minus_at_most. replace (c * a - c * b) with ((zero - c) * (b - a)) by ring.
  apply times_at_least_zero; [now apply minus_at_most in sign | now apply minus_at_most in known].
Qed.

Lemma not_both : forall a b : K, a < b -> b <= a -> False.
Proof. intros a b [known different] other. now apply different, at_most_antisym. Qed.

Lemma less_at_most : forall a b c : K, a < b -> b <= c -> a < c.
Proof.
  intros a b c [first different] second. split; [now apply at_most_trans with b |].
  intros ->. now apply different, at_most_antisym.
Qed.

Lemma at_least_one : @at_most K zero one.
Proof.
  destruct (compare (@zero K) one) as [known | below]; trivial. apply minus_at_most in below.
  replace (@one K) with ((@zero K - one) * (zero - one)) by ring. now apply times_at_least_zero.
Qed.

Lemma zero_less_one : @zero K < one.
Proof. split; [apply at_least_one |]. intro same. now apply (F_1_neq_0 (laws K)). Qed.

Lemma cancel : forall a b c : K, zero < c -> c * a <= c * b -> a <= b.
Proof.
  intros a b c positive known. destruct (compare a b) as [| other]; trivial.
  assert (c <> zero) as nonzero by (destruct positive; congruence).
  assert (c * a = c * b) as same.
  { apply at_most_antisym; trivial. apply times_at_most; [apply positive | trivial]. }
  replace b with a; [apply at_most_refl |].
  replace a with (c * a / c) by (field; trivial). rewrite same. now field.
Qed.

(** *** Integers among them *)

Lemma of_Z_morphism :
  ring_morph (@zero K) one plus times minus opposite eq 0%Z 1%Z Z.add Z.mul Z.sub Z.opp Zeq_bool of_Z.
Proof.
  apply gen_phiZ_morph; [apply Eqsth | apply Eq_ext | apply (F_R (laws K))].
Qed.

Lemma of_Z_add : forall m n, @of_Z K (m + n) = of_Z m + of_Z n.
Proof. apply (morph_add of_Z_morphism). Qed.

Lemma of_Z_sub : forall m n, @of_Z K (m - n) = of_Z m - of_Z n.
Proof. apply (morph_sub of_Z_morphism). Qed.

Lemma of_Z_mul : forall m n, @of_Z K (m * n) = of_Z m * of_Z n.
Proof. apply (morph_mul of_Z_morphism). Qed.

Lemma of_Z_zero : @of_Z K 0 = zero.
Proof. reflexivity. Qed.

Lemma of_Z_at_most : forall m n, (m <= n)%Z -> @of_Z K m <= of_Z n.
Proof.
  assert (forall n, (0 <= n)%Z -> zero <= @of_Z K n) as sign.
  { apply natlike_ind; [apply at_most_refl |]. intros n _ known. rewrite <- Z.add_1_r, of_Z_add.
    replace (@zero K) with (@zero K + zero) by ring. apply plus_both; trivial. apply at_least_one. }
  intros m n known. apply minus_at_most. rewrite <- of_Z_sub. apply sign. lia.
Qed.

Lemma of_Z_positive : forall n, (0 < n)%Z -> zero < @of_Z K n.
Proof.
  intros n known. apply less_at_most with one; [apply zero_less_one |].
  apply (of_Z_at_most 1). lia.
Qed.

Lemma power_positive : forall bits, (0 <= bits)%Z -> zero < @of_Z K (2 ^ bits).
Proof. intros bits known. apply of_Z_positive. now apply Z.pow_pos_nonneg. Qed.

Lemma power_nonzero : forall bits, (0 <= bits)%Z -> @of_Z K (2 ^ bits) <> zero.
Proof. intros bits known. destruct (power_positive bits known). congruence. Qed.

Lemma dyadic_at_most : forall bits m n, (0 <= bits)%Z -> (m <= n)%Z -> @dyadic K bits m <= dyadic bits n.
Proof.
  intros bits m n known order. apply (cancel _ _ (of_Z (2 ^ bits))); [now apply power_positive |].
  assert (@of_Z K (2 ^ bits) <> zero) as nonzero by now apply power_nonzero.
  unfold dyadic. replace (of_Z (2 ^ bits) * (of_Z m / of_Z (2 ^ bits))) with (@of_Z K m) by (field; trivial).
  replace (of_Z (2 ^ bits) * (of_Z n / of_Z (2 ^ bits))) with (@of_Z K n) by (field; trivial).
  now apply of_Z_at_most.
Qed.

Lemma weight_add : forall m n, weight K (m + n) = weight K m + weight K n.
Proof.
  intros m n. unfold weight, dyadic. rewrite of_Z_add. field. now apply power_nonzero.
Qed.

Lemma weight_sub : forall m n, weight K (m - n) = weight K m - weight K n.
Proof.
  intros m n. unfold weight, dyadic. rewrite of_Z_sub. field. now apply power_nonzero.
Qed.

(** ** Intervals enclose *)

Variable s : K.
Hypothesis s_positive : zero < s.

Definition encloses (i : interval) (a : K) : Prop := of_Z (fst i) <= s * a /\ s * a <= of_Z (snd i).

Definition encloses_both (i : interval * interval) (v : vector K) : Prop :=
  encloses (fst i) (fst v) /\ encloses (snd i) (snd v).

Lemma both_encloses : forall i j a b, encloses i a -> encloses j b -> encloses (both i j) (a + b).
Proof.
  intros i j a b [] []. unfold encloses, both. cbn [fst snd]. rewrite !of_Z_add.
  replace (s * (a + b)) with (s * a + s * b) by ring. split; now apply plus_both.
Qed.

Lemma down_at_most : forall bits m a, (0 <= bits)%Z ->
  of_Z m <= of_Z (2 ^ bits) * a -> @of_Z K (down bits m) <= a.
Proof.
  intros bits m a known bound. apply (cancel _ _ (of_Z (2 ^ bits))); [now apply power_positive |].
  apply at_most_trans with (of_Z m); trivial. rewrite <- of_Z_mul. apply of_Z_at_most.
  unfold down. rewrite Z.shiftr_div_pow2 by trivial. apply Z.mul_div_le. now apply Z.pow_pos_nonneg.
Qed.

Lemma at_most_up : forall bits m a, (0 <= bits)%Z ->
  of_Z (2 ^ bits) * a <= of_Z m -> a <= @of_Z K (up bits m).
Proof.
  intros bits m a known bound. apply (cancel _ _ (of_Z (2 ^ bits))); [now apply power_positive |].
  apply at_most_trans with (of_Z m); trivial. rewrite <- of_Z_mul. apply of_Z_at_most.
  unfold up. rewrite Z.shiftr_div_pow2 by trivial.
  pose proof (Z.mul_div_le (- m) (2 ^ bits) (Z.pow_pos_nonneg 2 bits eq_refl known)). lia.
Qed.

Lemma product_encloses : forall bits m i a, (0 <= bits)%Z ->
  encloses i a -> encloses (product bits m i) (dyadic bits m * a).
Proof.
  intros bits m i a known [low high]. unfold product, encloses.
  assert (of_Z (2 ^ bits) * (s * (dyadic bits m * a)) = of_Z m * (s * a)) as whole.
  { unfold dyadic. field. now apply power_nonzero. }
  destruct (Z.leb_spec 0 m) as [sign | sign]; cbn [fst snd]; split;
    (apply down_at_most || apply at_most_up); trivial; rewrite whole, of_Z_mul.
  1, 2: apply times_at_most; trivial; now apply (of_Z_at_most 0).
  all: apply times_negative; trivial; apply (of_Z_at_most _ 0); lia.
Qed.

Lemma weight_product_encloses : forall m i a, encloses i a -> encloses (weight_product m i) (weight K m * a).
Proof. intros. now apply product_encloses. Qed.

Lemma positive_part_encloses : forall i a, encloses i a -> encloses (positive_part i) (relu K a).
Proof.
  intros i a [low high]. unfold encloses, positive_part, relu. cbn [fst snd].
  destruct (compare zero a) as [sign | sign].
  - split.
    + apply Z.max_case; trivial. apply times_at_least_zero; trivial. apply s_positive.
    + apply at_most_trans with (of_Z (snd i)); trivial. apply of_Z_at_most. lia.
  - replace (s * zero) with (@of_Z K 0) by (rewrite of_Z_zero; ring). split; [| apply of_Z_at_most; lia].
    apply Z.max_case; [apply at_most_refl |]. apply at_most_trans with (s * a); trivial.
    rewrite of_Z_zero. replace zero with (s * zero) by ring. apply times_at_most; trivial. apply s_positive.
Qed.

Lemma add_encloses : forall i j u v,
  encloses_both i u -> encloses_both j v -> encloses_both (add_in i j) (add K u v).
Proof. intros i j u v [] []. split; now apply both_encloses. Qed.

Lemma dot_encloses : forall row i v, encloses_both i v -> encloses (dot_in row i) (dot K (weights K row) v).
Proof. intros row i v []. apply both_encloses; now apply weight_product_encloses. Qed.

Lemma apply_encloses : forall rows i v, encloses_both i v -> encloses_both (apply_in rows i) (apply K rows v).
Proof. intros. split; now apply dot_encloses. Qed.

Lemma least_at_most : forall m i a, encloses i a -> of_Z (least m i) <= of_Z m * (s * a).
Proof.
  intros m i a [low high]. unfold least. rewrite of_Z_mul. destruct (Z.leb_spec 0 m) as [sign | sign].
  - apply times_at_most; trivial. now apply (of_Z_at_most 0).
  - apply times_negative; trivial. apply (of_Z_at_most _ 0). lia.
Qed.

Section One.

Variable one_in : interval.
Hypothesis one_enclosed : encloses one_in one.

Lemma constant_encloses : forall m, encloses (weight_product m one_in) (weight K m).
Proof.
  intro m. replace (weight K m) with (weight K m * one) by ring. now apply weight_product_encloses.
Qed.

Lemma weights_enclose : forall m, encloses_both (weights_in one_in m) (weights K m).
Proof. intro m. split; apply constant_encloses. Qed.

Lemma residual_encloses : forall n t, encloses_both (weights_in one_in (residual_units n t)) (residual K n t).
Proof.
  intros n t. unfold residual, add. cbn [fst snd weights]. rewrite <- !weight_add.
  exact (weights_enclose (residual_units n t)).
Qed.

Lemma neurons_enclose : forall i x, encloses_both i x -> encloses_both (neurons_in one_in i) (neurons K x).
Proof.
  intros i x known.
  destruct (add_encloses _ _ _ _ (apply_encloses neuron_in _ _ known) (weights_enclose neuron_in_bias)).
  split; now apply positive_part_encloses.
Qed.

Lemma after_neurons_encloses : forall i x,
  encloses_both i x -> encloses_both (after_neurons_in one_in i) (after_neurons K x).
Proof.
  intros i x known. apply add_encloses; trivial.
  apply add_encloses; [now apply apply_encloses, neurons_enclose | apply weights_enclose].
Qed.

Lemma lead_is_less : forall i x t u, encloses_both i x -> (0 < lead one_in i t u)%Z ->
  dot K (weights K (unembedding u)) x + weight K (unembedding_bias u) <
  dot K (weights K (unembedding t)) x + weight K (unembedding_bias t).
Proof.
  intros i x t u [first second] positive.
  set (a := dot K _ x + _). set (b := dot K _ x + _).
  assert (@of_Z K (lead one_in i t u) <= of_Z (2 ^ weight_bits) * s * (b - a)) as bound.
  { replace (of_Z (2 ^ weight_bits) * s * (b - a)) with
      (of_Z (fst (unembedding t) - fst (unembedding u)) * (s * fst x) +
       of_Z (snd (unembedding t) - snd (unembedding u)) * (s * snd x) +
       of_Z (unembedding_bias t - unembedding_bias u) * (s * one)).
    - unfold lead. rewrite !of_Z_add. repeat apply plus_both; now apply least_at_most.
    - subst a b. unfold dot, weights, weight, dyadic. cbn [fst snd]. rewrite !of_Z_sub. field.
      now apply power_nonzero. }
  pose proof (less_at_most _ _ _ (of_Z_positive _ positive) bound) as above.
  assert (zero <= of_Z (2 ^ weight_bits) * s) as sign.
  { apply times_at_least_zero; [now apply power_positive | apply s_positive]. }
  split.
  - destruct (compare a b) as [| other]; trivial. exfalso. apply (not_both _ _ above).
    replace zero with (of_Z (2 ^ weight_bits) * s * zero) by ring. apply times_at_most; trivial.
    apply minus_at_most in other. apply minus_at_most. now replace (zero - (b - a)) with (a - b) by ring.
  - intro same. destruct above as [_ different]. apply different. rewrite same. ring.
Qed.

End One.
End Order.

(** ** In a context *)

Section Context.

Variable K : ordered_field.
Open Scope F.

Add Field again_field_of_K : (laws K).

Variable e : nat -> nat -> K.
Variable e_sink : K.
Hypothesis known : enclosed K e e_sink.

Definition unit : K := of_Z (2 ^ exp_bits).

Lemma unit_positive : zero < unit.
Proof. now apply power_positive. Qed.

Lemma within_units : forall ends a, within K ends a ->
  of_Z (fst ends) <= unit * a /\ unit * a <= of_Z (snd ends).
Proof.
  intros ends a [low high]. unfold dyadic in *. fold unit in low, high.
  assert (unit <> zero) as nonzero by (destruct unit_positive; congruence).
  replace (of_Z (fst ends)) with (unit * (of_Z (fst ends) / unit)) by (field; trivial).
  replace (of_Z (snd ends)) with (unit * (of_Z (snd ends) / unit)) by (field; trivial).
  split; apply times_at_most; trivial; apply unit_positive.
Qed.

Lemma normaliser_enclosed : forall keys,
  of_Z (fst (normaliser_in keys)) <= unit * normaliser K e e_sink keys /\
  unit * normaliser K e e_sink keys <= of_Z (snd (normaliser_in keys)).
Proof.
  unfold normaliser_in, normaliser.
  induction keys as [| [[n d] t] keys [low high]]; cbn [fold_right both fst snd].
  - apply within_units, known.
  - destruct (within_units _ _ (proj1 known n d)). rewrite !of_Z_add.
    match goal with |- context [unit * (e n d + ?rest)] =>
      replace (unit * (e n d + rest)) with (unit * e n d + unit * rest) by ring
    end.
    split; now apply plus_both.
Qed.

Lemma value_is : forall n t, value_vector K n t =
  (dyadic (2 * weight_bits) (fst (value_units n t)), dyadic (2 * weight_bits) (snd (value_units n t))).
Proof.
  intros n t. unfold value_vector, apply, residual, add, weights, weight, dyadic, dot.
  replace (2 * weight_bits)%Z with (weight_bits + weight_bits)%Z by reflexivity.
  rewrite Z.pow_add_r by discriminate.
  unfold value_units, dot_units, residual_units, sum_of_pairs. cbv zeta. cbn [fst snd].
  rewrite !of_Z_add, !of_Z_mul, !of_Z_add.
  assert (@of_Z K (2 ^ weight_bits) <> zero) by now apply power_nonzero.
  f_equal; field; trivial.
Qed.

Variable n : nat.
Variable asking : token.
Variable keys : list key.
Hypothesis positive : (0 < fst (normaliser_in keys))%Z.

Definition all : K := normaliser K e e_sink keys.

Lemma unit_all_positive : zero < unit * all.
Proof.
  apply less_at_most with (of_Z (fst (normaliser_in keys))); [now apply of_Z_positive | apply normaliser_enclosed].
Qed.

Lemma all_nonzero : all <> zero.
Proof.
  intro none. destruct unit_all_positive as [_ different]. apply different. rewrite none. ring.
Qed.

Lemma one_encloses : encloses K (unit * all) (normaliser_in keys) one.
Proof.
  unfold encloses. replace (unit * all * one) with (unit * all) by ring. apply normaliser_enclosed.
Qed.

Lemma look_up_is : forall m d t, look_up m d t = said m d t.
Proof. intros [| [| [| m]]] [| d] [[] | | | | |]; vm_compute; reflexivity. Qed.

Lemma attention_encloses : encloses_both K (unit * all) (attention_in keys) (attention K e e_sink keys).
Proof.
  unfold attention, attention_in. fold all. generalize keys at 1 2 as some.
  induction some as [| [[m d] t] some hypothesis]; cbn [fold_right].
  - split; unfold encloses; cbn [fst snd]; rewrite of_Z_zero; replace (unit * all * zero) with (@zero K) by ring;
      split; apply at_most_refl.
  - apply add_encloses; trivial.
    assert (encloses K (unit * all) (exp_near m d) (e m d / all)) as share.
    { unfold encloses. replace (unit * all * (e m d / all)) with (unit * e m d) by (field; apply all_nonzero).
      apply within_units, known. }
    rewrite look_up_is, value_is. unfold scale, said. cbn [fst snd]. split; cbn [fst snd].
    + replace (e m d / all * dyadic (2 * weight_bits) (fst (value_units m t)))
        with (dyadic (2 * weight_bits) (fst (value_units m t)) * (e m d / all)) by ring.
      now apply product_encloses.
    + replace (e m d / all * dyadic (2 * weight_bits) (snd (value_units m t)))
        with (dyadic (2 * weight_bits) (snd (value_units m t)) * (e m d / all)) by ring.
      now apply product_encloses.
Qed.

Lemma leading_is_larger : forall t u,
  let one := normaliser_in keys in
  (0 < lead one (after_neurons_in one (middle_in one n asking keys)) t u)%Z ->
  logit K e e_sink n asking keys u < logit K e e_sink n asking keys t.
Proof.
  intros t u one. apply (lead_is_less K (unit * all) unit_all_positive one one_encloses).
  apply after_neurons_encloses; [apply unit_all_positive | apply one_encloses |].
  apply add_encloses; [apply residual_encloses, one_encloses | apply apply_encloses, attention_encloses].
Qed.

End Context.

(** ** The theorems *)

Lemma same_token_is : forall t u, same_token t u = true -> t = u.
Proof.
  intros [d | | | | |] [f | | | | |] same; try discriminate same; trivial.
  f_equal. now apply value_injective, Nat.eqb_eq.
Qed.

Lemma vocabulary_complete : forall t, In t vocabulary.
Proof. intros [[] | | | | |]; simpl; tauto. Qed.

(** In every context that can occur, the logit of the right token is larger than all others. *)
Theorem network_is_right :
  forall (K : ordered_field) (e : nat -> nat -> K) (e_sink : K),
    enclosed K e e_sink ->
    forall c t, In (c, t) table ->
    forall u, u <> t ->
      less (context_logit K e e_sink c u) (context_logit K e e_sink c t).
Proof.
  intros K e e_sink known c t listed u other.
  pose proof (find_none _ _ none_fails _ listed) as checked. apply negb_false_iff in checked. unfold leads in checked.
  apply andb_true_iff in checked as [positive checked]. apply Z.ltb_lt in positive.
  pose proof (proj1 (forallb_forall _ _) checked u (vocabulary_complete u)) as leading. cbv beta in leading.
  apply orb_true_iff in leading as [same | leading]; [now apply same_token_is in same as -> |].
  apply Z.ltb_lt in leading. now apply leading_is_larger.
Qed.

Lemma largest_is : forall (K : ordered_field) (of : token -> K) t,
  (forall u, u <> t -> less (of u) (of t)) -> largest K of = t.
Proof.
  intros K of t leads.
  assert (forall u, at_most (of t) (of u) -> u = t) as only.
  { intros u known. destruct (same_token u t) eqn:same; [now apply same_token_is |].
    exfalso. apply (not_both K (of u) (of t)); trivial. apply leads. intros ->.
    destruct t; simpl in same; try discriminate. now rewrite Nat.eqb_refl in same. }
  assert (forall l best, best = t \/ In t l ->
    fold_left (fun best u => if compare (of u) (of best) then best else u) l best = t) as found.
  { induction l as [| u l hypothesis]; intros best known; [now destruct known |]. simpl. apply hypothesis.
    destruct known as [-> | [-> | later]]; [left | left | now right].
    - destruct (compare (of u) (of t)); auto.
    - destruct (compare (of t) (of best)); auto. }
  apply found. right. apply vocabulary_complete.
Qed.

Lemma last_of_prefix : forall x y written,
  last (addresses 0 0 (prefix x y written)) (0%nat, 0%nat, End) =
  (2%nat, length written, asks (context_of_sum x y written)).
Proof.
  intros x y written. rewrite addresses_prefix, app_comm_cons, app_assoc.
  match goal with |- last (?first ++ _) _ = _ => generalize first as earlier end. intro earlier.
  destruct written as [| d l] using rev_ind; simpl addresses.
  - now rewrite last_last.
  - rewrite map_app, addresses_digits, app_comm_cons, app_assoc. simpl addresses. rewrite last_last.
    unfold asks, context_of_sum. rewrite app_length, Nat.add_1_r. cbn [written_here digit_or_sign].
    unfold digit_at. now rewrite nth_error_app2, Nat.sub_diag.
Qed.

Lemma logits_of_prefix : forall (K : ordered_field) e e_sink x y written,
  logits K e e_sink (prefix x y written) = context_logit K e e_sink (window (prefix x y written)).
Proof.
  intros. unfold logits, context_logit. now rewrite last_of_prefix, visible_is_context, window_of_sum.
Qed.

(** Greedy decoding of this network adds all numbers. *)
Theorem network_adds :
  forall (K : ordered_field) (e : nat -> nat -> K) (e_sink : K),
    enclosed K e e_sink ->
    forall a b steps : nat,
      (length (digits (a + b)) < steps)%nat ->
      greedy (next_token K e e_sink) steps (question a b) =
        map Digit (digits (a + b)) ++ [End].
Proof.
  intros K e e_sink known.
  apply (adds_all_numbers _ (fun c => largest K (context_logit K e e_sink c))).
  - intros. unfold next_token. now rewrite logits_of_prefix.
  - intros c t listed. apply largest_is. intros u other. now apply (network_is_right K e e_sink known c t).
Qed.

(** ** The hypotheses can be met *)

(** The rational numbers are an ordered field ... *)
Definition rationals : ordered_field.
Proof.
  refine {| carrier := Qc; at_most := Qcle; laws := Qcft;
            compare := fun a b => match Qclt_le_dec a b with
                                  | Specif.left known => Specif.left (Qclt_le_weak a b known)
                                  | Specif.right known => Specif.right known
                                  end |}.
  - exact Qcle_trans.
  - exact Qcle_antisym.
  - intros. apply Qcplus_le_compat; [assumption | apply Qcle_refl].
  - intros a b first second. rewrite <- (Qcmult_0_l b). now apply Qcmult_le_compat_r.
Defined.

(** ... and in each there are numbers in the enclosures, such as their lower ends. *)
Definition low_near {K : ordered_field} (n d : nat) : K := dyadic exp_bits (fst (exp_near n d)).

Definition low_sink {K : ordered_field} : K := dyadic exp_bits (fst exp_sink).

Theorem ends_are_enclosed : forall K : ordered_field, enclosed K low_near low_sink.
Proof.
  assert (forall (K : ordered_field) ends, fst ends <= snd ends -> within K ends (dyadic exp_bits (fst ends)))
    as lower.
  { intros K ends order. split; [apply at_most_refl | now apply dyadic_at_most]. }
  intro K. split; [intros [| [| [| n]]] [| d] |]; now apply lower.
Qed.
