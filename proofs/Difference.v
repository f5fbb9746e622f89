(** * Subtraction and comparison

    The text of a difference in two passes, as chapter 79 has it: 12 - 34 is written [21-43=11=-22$]. The first pass
    says after each column which number is less so far, the second writes the sign and the digits. *)

From Adder Require Export Slots.

(** ** Texts *)

(** [a-b=], and after it what is written so far. *)
Definition difference_prefix (x y : list digit) (answer : text) : text :=
  map Digit x ++ Minus :: map Digit y ++ Equals :: answer.

Definition difference_question (a b : nat) : text := difference_prefix (digits a) (digits b) [].

(** ** What a token sees

    It knows of a key in which slot it is and which token, and nothing else. Addresses are those of sums: the _part_
    counts the signs so far, 2 is the first pass, 4 the second. *)

Inductive slot_name := FirstNumber | SecondNumber | Below | Sign | Own.

(** The slot of a key for the last token, which has this part and index; [back] tokens come after the key. *)
Definition slot_of (part index : nat) (k : address) (back : nat) : option slot_name :=
  let '(p, j, _) := k in
  let in_column := ((part =? 2) || (part =? 4)) && (j =? S index) in
  if in_column && (p =? 0) then Some FirstNumber
  else if in_column && (p =? 1) then Some SecondNumber
  else if (p =? 2) && (0 <? j) && (((part =? 4) && (j =? index)) || ((part =? 3) && (back =? 1))) then Some Below
  else if (part =? 4) && (p =? 4) && (j =? 0) then Some Sign
  else if back =? 0 then Some Own
  else None.

Definition visible_in_slots (t : text) : list (slot_name * token) :=
  let all := addresses 0 0 t in
  let '(part, index, _) := last all (0, 0, End) in in_slots (slot_of part index) 0 all.

(** Five slots, and what is in them. *)
Record view := View
  { first_number : option token; second_number : option token; below : option token; sign : option token;
    own : option token }.

(** The keys that a view stands for, in the order of the text. *)
Definition keys_in_view (v : view) : list (slot_name * token) :=
  in_slot FirstNumber (first_number v) ++ in_slot SecondNumber (second_number v) ++ in_slot Below (below v) ++
  in_slot Sign (sign v) ++ in_slot Own (own v).

(** *** In each pass it is what the slots are named after *)

Lemma addresses_are_a_run : forall l n j, addresses n j (map Digit l) = run (fun i => (n, i)) j l.
Proof. induction l as [| d l hypothesis]; intros; trivial. simpl. now rewrite hypothesis. Qed.

Definition sign_at (part : nat) (t : token) : nat * nat * token := (part, 0, t).

Definition of_question (x y : list digit) : list (nat * nat * token) :=
  run (fun i => (0, i)) 0 x ++ sign_at 1 Minus :: run (fun i => (1, i)) 0 y.

Lemma addresses_difference : forall x y answer,
  addresses 0 0 (difference_prefix x y answer) = of_question x y ++ sign_at 2 Equals :: addresses 2 0 answer.
Proof.
  intros. unfold difference_prefix, of_question. rewrite addresses_digits. simpl. rewrite addresses_digits. simpl.
  now rewrite !addresses_are_a_run, <- app_assoc.
Qed.

(** What the last token sees of the question: in a column a digit of each number. *)
Lemma seen_of_question : forall x y part index more, 0 < more ->
  in_slots (slot_of part index) more (of_question x y) =
  if (part =? 2) || (part =? 4)
  then in_slot FirstNumber (digit_at x index) ++ in_slot SecondNumber (digit_at y index)
  else [].
Proof.
  intros x y part index more later. unfold of_question. rewrite in_slots_app. cbn [in_slots snd].
  replace (slot_of part index (sign_at 1 Minus) _) with (@None slot_name).
  2: { rewrite length_run. destruct more as [| more]; [lia |]. rewrite Nat.add_succ_r. unfold slot_of. simpl.
       now rewrite !andb_false_r. }
  cbn [app]. destruct ((part =? 2) || (part =? 4)) eqn:column.
  - rewrite (by_index _ _ FirstNumber (S index) 1), (by_index _ _ SecondNumber (S index) 1); trivial; try lia;
      intros j d [| back] away; try lia; unfold slot_of; rewrite column; simpl; rewrite ?andb_false_r, ?andb_true_r;
      now destruct (j =? index).
  - rewrite (by_none _ _ 1), (by_none _ _ 1); trivial; try lia;
      intros j d [| back] away; try lia; unfold slot_of; rewrite column; simpl; now rewrite ?andb_false_r.
Qed.

Lemma visible_from_last : forall t part index u,
  last (addresses 0 0 t) (0, 0, End) = (part, index, u) ->
  visible_in_slots t = in_slots (slot_of part index) 0 (addresses 0 0 t).
Proof. intros t part index u its_last. unfold visible_in_slots. now rewrite its_last. Qed.

(** First pass: a digit of each number, and itself. *)
Theorem seen_while_comparing : forall x y row,
  let i := length row in
  visible_in_slots (difference_prefix x y (map Digit row)) =
  keys_in_view (View (digit_at x i) (digit_at y i) None None (digit_or_sign (Some Equals) row i)).
Proof.
  intros. destruct (last_of_run (fun i => (2, i)) row (sign_at 2 Equals) (0, 0, End)) as [t its_last].
  rewrite (visible_from_last _ 2 i (match row with [] => Equals | _ => t end)).
  2: { rewrite addresses_difference, addresses_are_a_run, last_app by discriminate.
       etransitivity; [exact its_last |]. now destruct row. }
  rewrite addresses_difference, addresses_are_a_run, in_slots_app, seen_of_question by (simpl; lia).
  cbn [in_slots snd].
  rewrite (by_last _ _ Own 0) by (intros; unfold slot_of; simpl; now rewrite andb_false_r, Nat.add_0_r).
  rewrite length_run, Nat.add_0_r. unfold keys_in_view. simpl. rewrite <- app_assoc. do 2 f_equal.
  unfold i. now destruct row.
Qed.

(** Between the passes: what was written last of the first. *)
Theorem seen_at_the_sign : forall x y row,
  visible_in_slots (difference_prefix x y (map Digit row ++ [Equals])) =
  keys_in_view (View None None (digit_or_sign None row (length row)) None (Some Equals)).
Proof.
  intros. assert (addresses 0 0 (difference_prefix x y (map Digit row ++ [Equals])) =
    of_question x y ++ sign_at 2 Equals :: run (fun i => (2, i)) 0 row ++ [sign_at 3 Equals]) as all
    by (rewrite addresses_difference, addresses_digits, <- addresses_are_a_run; reflexivity).
  rewrite (visible_from_last _ 3 0 Equals); rewrite all.
  2: { rewrite app_comm_cons, app_assoc, last_app by discriminate. reflexivity. }
  rewrite in_slots_app, seen_of_question by (simpl; lia). cbn [in_slots snd].
  rewrite in_slots_app, app_length, length_run. cbn [length].
  rewrite (by_last _ _ Below 1).
  2: { intros. unfold slot_of. simpl. rewrite Nat.add_1_r. simpl. now destruct back. }
  simpl. now rewrite Nat.add_1_r.
Qed.

(** Second pass: a digit of each number, what the first pass wrote one column lower, the sign, and itself. *)
Theorem seen_while_subtracting : forall x y row (minus : bool) result,
  let i := length result in
  let s := if minus then Minus else Plus in
  visible_in_slots (difference_prefix x y (map Digit row ++ Equals :: s :: map Digit result)) =
  keys_in_view (View (digit_at x i) (digit_at y i) (digit_or_sign None row i) (Some s) (digit_or_sign None result i)).
Proof.
  intros. assert (addresses 0 0 (difference_prefix x y (map Digit row ++ Equals :: s :: map Digit result)) =
    (of_question x y ++ sign_at 2 Equals :: run (fun i => (2, i)) 0 row ++ [sign_at 3 Equals]) ++
    sign_at 4 s :: run (fun i => (4, i)) 0 result) as all.
  { rewrite addresses_difference, addresses_digits, <- !addresses_are_a_run. unfold s.
    destruct minus; simpl; now rewrite <- !app_assoc, <- app_comm_cons, <- app_assoc. }
  destruct (last_of_run (fun i => (4, i)) result (sign_at 4 s) (0, 0, End)) as [t its_last].
  rewrite (visible_from_last _ 4 i (match result with [] => s | _ => t end)); rewrite all.
  2: { rewrite last_app by discriminate. etransitivity; [exact its_last |]. now destruct result. }
  rewrite !in_slots_app, seen_of_question by (simpl; lia). cbn [in_slots snd]. rewrite in_slots_app.
  rewrite (by_index _ _ Below i 1) by
    (try (simpl; lia); intros j d [| back] away; try lia; unfold slot_of; simpl; rewrite !andb_false_r; simpl;
     now rewrite orb_false_r).
  rewrite (by_last _ _ Own 0).
  2: { intros. unfold slot_of. simpl. now rewrite !andb_false_r, Nat.add_0_r. }
  unfold keys_in_view. simpl. rewrite ?andb_false_r. simpl. now rewrite <- ?app_assoc, Nat.add_succ_r.
Qed.

(** ** What has to be written *)

Definition as_digit (c : comparison) : digit := match c with Eq => d0 | Lt => d1 | Gt => d2 end.

(** How two digits compare, or if they are equal, what stands below them. *)
Definition compared (a b : option digit) (before : comparison) : comparison :=
  match worth a ?= worth b with Eq => before | c => c end.

(** The digit of [a - b] in a column, if the first number is not the less; it borrows if it is, in the columns below. *)
Definition take_away (a b : option digit) (before : comparison) : digit :=
  digit_of (worth a + 10 - worth b - match before with Lt => 1 | _ => 0 end).

Definition subtracted (minus : bool) (a b : option digit) (before : comparison) : digit :=
  if minus then take_away b a (CompOpp before) else take_away a b before.

Definition is_less (c : comparison) : bool := match c with Lt => true | _ => false end.

Section Columns.

Variables x y : list digit.

(** How the numbers compare in their first [i] columns. *)
Fixpoint so_far (i : nat) : comparison :=
  match i with
  | 0 => Eq
  | S j => compared (nth_error x j) (nth_error y j) (so_far j)
  end.

Lemma so_far_compares : forall m, so_far m = (up_to m x ?= up_to m y).
Proof.
  induction m as [| m hypothesis]; trivial. cbn [so_far up_to]. unfold compared. rewrite hypothesis.
  pose proof (up_to_below x m). pose proof (up_to_below y m). symmetry.
  destruct (Nat.compare_spec (worth (nth_error x m)) (worth (nth_error y m))) as [-> | less | more].
  - destruct (Nat.compare_spec (up_to m x) (up_to m y));
      [apply Nat.compare_eq_iff | apply Nat.compare_lt_iff | apply Nat.compare_gt_iff]; lia.
  - apply Nat.compare_lt_iff. nia.
  - apply Nat.compare_gt_iff. nia.
Qed.

Definition column_difference (i : nat) : digit := take_away (nth_error x i) (nth_error y i) (so_far i).

Lemma columns_subtract : forall m,
  number (map column_difference (seq 0 m)) + up_to m y = up_to m x + 10 ^ m * Nat.b2n (is_less (so_far m)).
Proof.
  induction m as [| m hypothesis]; trivial.
  rewrite seq_S, map_app, number_app, map_length, seq_length. cbn [plus map number up_to so_far].
  unfold column_difference at 2, take_away. rewrite value_digit_of, Nat.pow_succ_r'.
  assert (forall l, worth (nth_error l m) < 10) as below
    by (intro l; destruct (nth_error l m); simpl; [apply value_below_ten | lia]).
  pose proof (below x) as below_x. pose proof (below y) as below_y.
  set (a := worth (nth_error x m)) in *. set (b := worth (nth_error y m)) in *. set (power := 10 ^ m) in *.
  assert ((a + 10 - b - match so_far m with Lt => 1 | _ => 0 end) mod 10 + b + Nat.b2n (is_less (so_far m)) =
          a + 10 * Nat.b2n (is_less (compared (nth_error x m) (nth_error y m) (so_far m)))) as column.
  { unfold compared. fold a b. destruct (Nat.compare_spec a b) as [-> | less | more], (so_far m); simpl Nat.b2n; lia. }
  set (now := (a + 10 - b - match so_far m with Lt => 1 | _ => 0 end) mod 10) in *. nia.
Qed.

End Columns.

Lemma so_far_opposite : forall x y m, so_far y x m = CompOpp (so_far x y m).
Proof. intros. rewrite !so_far_compares. apply Nat.compare_antisym. Qed.

(** ** The list of contexts *)

Definition orders := [Eq; Lt; Gt].

Definition sign_token (minus : bool) : token := if minus then Minus else Plus.

(** What follows in the first pass: how the columns so far compare, or the sign that ends it. *)
Definition next_comparison (a b : option digit) (before : comparison) : token :=
  match a, b with None, None => Equals | _, _ => Digit (as_digit (compared a b before)) end.

(** What follows in the second pass. *)
Definition next_digit (minus : bool) (a b : option digit) (before : comparison) : token :=
  match a, b with None, None => End | _, _ => Digit (subtracted minus a b before) end.

(** Which signs can stand before these digits: no number begins with a zero, so the longer one is the larger. *)
Definition may_have (minus : bool) (a b : option digit) (before : comparison) : bool :=
  match a, b with
  | Some _, Some _ => true
  | None, Some _ => minus
  | Some _, None => negb minus
  | None, None => eqb minus (is_less before)
  end.

(** Under columns that are equal there are zeros. *)
Definition may_be_under (before : comparison) : list digit := match before with Eq => [d0] | _ => all_digits end.

Definition entry_comparing (own : token) (before : comparison) '(a, b) : view * token :=
  (View (option_map Digit a) (option_map Digit b) None None (Some own), next_comparison a b before).

Definition entry_sign (before : comparison) : view * token :=
  (View None None (Some (Digit (as_digit before))) None (Some Equals), sign_token (is_less before)).

Definition entry_subtracting (minus : bool) (word own : option token) (before : comparison) '(a, b) : view * token :=
  (View (option_map Digit a) (option_map Digit b) word (Some (sign_token minus)) own, next_digit minus a b before).

Definition first_pairs : list (option digit * option digit) := list_prod (map Some all_digits) (map Some all_digits).

Definition difference_table : list (view * token) :=
  map (entry_comparing Equals Eq) first_pairs ++
  flat_map (fun before => map (entry_comparing (Digit (as_digit before)) before) all_pairs) orders ++
  map entry_sign orders ++
  flat_map (fun minus => map (entry_subtracting minus None None Eq) first_pairs) [false; true] ++
  flat_map (fun '(minus, before) =>
    flat_map (fun under =>
      map (entry_subtracting minus (Some (Digit (as_digit before))) (Some (Digit under)) before)
          (filter (fun '(a, b) => may_have minus a b before) all_pairs))
      (may_be_under before))
    (list_prod [false; true] orders).

Theorem how_many_of_differences : N.of_nat (length difference_table) = 5307%N.
Proof. vm_cast_no_check (eq_refl 5307%N). Qed.

(** ** What occurs is in the list *)

Lemma proper_at_least : forall l, proper l -> 1 < length l -> 10 ^ (length l - 1) <= number l.
Proof.
  intros l [-> | [some nonzero]] long; [simpl in long; lia |].
  rewrite (app_removelast_last d1 some) in *. rewrite last_last in nonzero.
  rewrite number_app, app_length. cbn [length number]. rewrite Nat.add_sub.
  assert (1 <= value (last l d1)) by (destruct (last l d1); simpl; (congruence || lia)). nia.
Qed.

Lemma shorter_is_less : forall x y, proper x -> proper y -> length x < length y -> number x < number y.
Proof.
  intros x y proper_x proper_y shorter. pose proof (up_to_below x (length x)) as below.
  rewrite number_up_to in below by trivial. pose proof (proper_some x proper_x).
  pose proof (proper_at_least y proper_y ltac:(lia)) as above.
  pose proof (Nat.pow_le_mono_r 10 (length x) (length y - 1) ltac:(lia) ltac:(lia)). lia.
Qed.

Section Passes.

Variables x y : list digit.
Hypothesis proper_x : proper x.
Hypothesis proper_y : proper y.

Let L := columns_of_both x y.

Definition minus_of : bool := is_less (so_far x y (columns_of_both x y)).

Definition row (i : nat) : digit := as_digit (so_far x y (S i)).

Definition result (i : nat) : digit := subtracted minus_of (nth_error x i) (nth_error y i) (so_far x y i).

Lemma whole_numbers_compare : so_far x y L = (number x ?= number y).
Proof. rewrite so_far_compares, !number_up_to; trivial; unfold L, columns_of_both; lia. Qed.

Lemma before_the_end : forall i, i < L -> ~ (nth_error x i = None /\ nth_error y i = None).
Proof. intros i inside [x_ends%nth_error_None y_ends%nth_error_None]. unfold L, columns_of_both in inside. lia. Qed.

Lemma comparison_inside : forall i, i < L ->
  next_comparison (nth_error x i) (nth_error y i) (so_far x y i) = Digit (row i).
Proof.
  intros i inside%before_the_end. unfold next_comparison, row. cbn [so_far].
  destruct (nth_error x i), (nth_error y i); trivial. tauto.
Qed.

Lemma digit_inside : forall i, i < L ->
  next_digit minus_of (nth_error x i) (nth_error y i) (so_far x y i) = Digit (result i).
Proof.
  intros i inside%before_the_end. unfold next_digit, result.
  destruct (nth_error x i), (nth_error y i); trivial. tauto.
Qed.

Lemma pair_at_first : In (nth_error x 0, nth_error y 0) first_pairs.
Proof.
  pose proof (proper_some x proper_x). pose proof (proper_some y proper_y).
  destruct x as [| d l], y as [| e m]; simpl in * |-; try lia. apply in_prod; apply (in_map Some), all_digits_complete.
Qed.

Lemma comparing_is_listed : forall i,
  In (View (digit_at x i) (digit_at y i) None None (digit_or_sign (Some Equals) (map row (seq 0 i)) i),
      next_comparison (nth_error x i) (nth_error y i) (so_far x y i)) difference_table.
Proof.
  intros [| j]; unfold difference_table; rewrite !in_app_iff.
  - left. apply (in_map (entry_comparing Equals Eq) _ _ pair_at_first).
  - right. left. apply in_flat_map. exists (so_far x y (S j)).
    split; [destruct (so_far x y (S j)); simpl; tauto |]. unfold digit_or_sign. rewrite digit_of_run by lia.
    apply (in_map (entry_comparing (Digit (row j)) (so_far x y (S j))) _ _ (all_pairs_complete _ _)).
Qed.

Lemma sign_is_listed :
  In (View None None (Some (Digit (as_digit (so_far x y L)))) None (Some Equals), sign_token minus_of) difference_table.
Proof.
  unfold difference_table. rewrite !in_app_iff. do 2 right. left.
  apply (in_map entry_sign). destruct (so_far x y L); simpl; tauto.
Qed.

Lemma its_sign_may_be : forall i, i <= L -> may_have minus_of (nth_error x i) (nth_error y i) (so_far x y i) = true.
Proof.
  intros i inside. unfold minus_of. fold L. rewrite whole_numbers_compare.
  destruct (nth_error x i) eqn:in_x, (nth_error y i) eqn:in_y; trivial; simpl.
  - apply nth_error_None in in_y. assert (i < length x) by (apply nth_error_Some; congruence).
    pose proof (shorter_is_less y x proper_y proper_x ltac:(lia)) as more.
    apply Nat.compare_gt_iff in more. now rewrite more.
  - apply nth_error_None in in_x. assert (i < length y) by (apply nth_error_Some; congruence).
    pose proof (shorter_is_less x y proper_x proper_y ltac:(lia)) as less.
    apply Nat.compare_lt_iff in less. now rewrite less.
  - apply nth_error_None in in_x, in_y. assert (i = L) as -> by (unfold L, columns_of_both in *; lia).
    rewrite whole_numbers_compare. apply eqb_reflx.
Qed.

Lemma its_digit_may_be : forall j, In (result j) (may_be_under (so_far x y (S j))).
Proof.
  intro j. destruct (so_far x y (S j)) eqn:equal; try apply all_digits_complete. left. symmetry.
  cbn [so_far] in equal. unfold compared in equal.
  destruct (Nat.compare_spec (worth (nth_error x j)) (worth (nth_error y j))) as [same | |]; try discriminate.
  unfold result, subtracted, take_away. rewrite equal, same. simpl CompOpp.
  destruct minus_of; now replace (_ - _ - 0) with 10 by lia.
Qed.

Lemma subtracting_is_listed : forall i, i <= L ->
  In (View (digit_at x i) (digit_at y i) (digit_or_sign None (map row (seq 0 L)) i) (Some (sign_token minus_of))
           (digit_or_sign None (map result (seq 0 i)) i),
      next_digit minus_of (nth_error x i) (nth_error y i) (so_far x y i)) difference_table.
Proof.
  intros [| j] inside; unfold difference_table; rewrite !in_app_iff; do 3 right.
  - left. apply in_flat_map. exists minus_of. split; [destruct minus_of; simpl; tauto |].
    apply (in_map (entry_subtracting minus_of None None Eq) _ _ pair_at_first).
  - right. apply in_flat_map. exists (minus_of, so_far x y (S j)). split.
    { apply in_prod; [destruct minus_of | destruct (so_far x y (S j))]; simpl; tauto. }
    apply in_flat_map. exists (result j). split; [apply its_digit_may_be |].
    unfold digit_or_sign. rewrite !digit_of_run by lia. unfold row.
    apply (in_map (entry_subtracting minus_of (Some (Digit (as_digit (so_far x y (S j))))) (Some (Digit (result j)))
                     (so_far x y (S j))) _ (nth_error x (S j), nth_error y (S j))).
    apply filter_In. split; [apply all_pairs_complete | now apply its_sign_may_be].
Qed.

End Passes.

(** ** The theorem *)

Lemma prefix_goes_on : forall x y s t, difference_prefix x y s ++ t = difference_prefix x y (s ++ t).
Proof. intros. unfold difference_prefix. now rewrite <- app_assoc, <- app_comm_cons, <- app_assoc. Qed.

(** Let the next token after [a-b=...] be decided by what is seen in the five slots alone, and rightly in every context
    of the list. Then greedy decoding after [a-b=] writes, whatever the numbers, first for each column how they compare
    up to it (0 equal, 1 less, 2 greater), then the sign of [a - b] and the digits of the difference, with zeros up to
    the length of the longer number, and then the end token. *)
Theorem subtracts_all_numbers :
  forall (next : text -> token) (decide : list (slot_name * token) -> token),
    (forall x y answer,
      next (difference_prefix x y answer) =
        decide (visible_in_slots (difference_prefix x y answer))) ->
    (forall v t, In (v, t) difference_table ->
      decide (keys_in_view v) = t) ->
    forall a b steps : nat,
      let columns := max (length (digits a)) (length (digits b)) in
      2 * columns + 2 < steps ->
      exists comparisons difference : list digit,
        greedy next steps (difference_question a b) =
          map Digit comparisons ++ Equals ::
          (if a <? b then Minus else Plus) ::
          map Digit difference ++ [End] /\
        comparisons =
          map (fun i => as_digit (a mod 10 ^ S i ?= b mod 10 ^ S i))
              (seq 0 columns) /\
        length difference = columns /\
        number difference = (a - b) + (b - a).
Proof.
  intros next decide local is_right a b steps columns enough.
  pose proof (digits_proper a) as proper_a. pose proof (digits_proper b) as proper_b.
  pose proof (proper_some _ proper_a) as some.
  set (x := digits a) in *. set (y := digits b) in *.
  assert (number x = a) as is_a by apply number_digits. assert (number y = b) as is_b by apply number_digits.
  pose proof (whole_numbers_compare x y) as whole. fold columns in whole. unfold columns_of_both in whole.
  fold columns in whole. rewrite is_a, is_b in whole.
  assert (minus_of x y = (a <? b)) as its_sign.
  { unfold minus_of, columns_of_both. fold columns. rewrite whole. unfold Nat.ltb.
    destruct (Nat.compare_spec a b), (Nat.leb_spec (S a) b); trivial; lia. }
  assert (forall i, next (difference_prefix x y (map Digit (map (row x y) (seq 0 i)))) =
                    next_comparison (nth_error x i) (nth_error y i) (so_far x y i)) as while_comparing.
  { intro i. rewrite local, seen_while_comparing, map_length, seq_length. now apply is_right, comparing_is_listed. }
  set (first := map Digit (map (row x y) (seq 0 columns))) in *.
  assert (next (difference_prefix x y (first ++ [Equals])) = sign_token (minus_of x y)) as at_the_sign.
  { rewrite local. unfold first. rewrite seen_at_the_sign, map_length, seq_length. unfold digit_or_sign.
    destruct columns as [| c] eqn:all; [lia |]. rewrite digit_of_run by lia. apply is_right.
    pose proof (sign_is_listed x y) as listed. unfold columns_of_both in listed. fold columns in listed.
    rewrite all in listed. exact listed. }
  set (minus := minus_of x y) in *.
  assert (forall i, i <= columns ->
    next (difference_prefix x y (first ++ Equals :: sign_token minus :: map Digit (map (result x y) (seq 0 i)))) =
    next_digit minus (nth_error x i) (nth_error y i) (so_far x y i)) as while_subtracting.
  { intros i inside. rewrite local. unfold first, sign_token. rewrite seen_while_subtracting, map_length, seq_length.
    now apply is_right, subtracting_is_listed. }
  exists (map (row x y) (seq 0 columns)), (map (result x y) (seq 0 columns)). repeat split.
  - unfold difference_question. fold x y. rewrite (greedy_digits next (row x y) _ columns); [| lia |].
    2: { intros i inside. rewrite prefix_goes_on, app_nil_l, while_comparing. now apply comparison_inside. }
    cbv zeta. fold first. f_equal. rewrite prefix_goes_on, app_nil_l.
    destruct (steps - columns) as [| [| fewer]] eqn:left; try lia.
    destruct (both_ended x y columns) as [x_ends y_ends]; [unfold columns_of_both; lia |].
    rewrite (greedy_step next _ Equals); [| unfold first; rewrite while_comparing, x_ends, y_ends; trivial | easy].
    f_equal. rewrite prefix_goes_on.
    rewrite (greedy_step next _ (sign_token minus)); [| trivial | now destruct minus]. rewrite <- its_sign.
    f_equal. rewrite prefix_goes_on, <- app_assoc. cbn [app].
    rewrite (greedy_digits next (result x y) _ columns); [| lia |].
    2: { intros i inside. rewrite prefix_goes_on, <- app_assoc. cbn [app]. rewrite while_subtracting by lia.
         now apply digit_inside. }
    cbv zeta. f_equal. rewrite prefix_goes_on, <- app_assoc. cbn [app].
    destruct (fewer - columns) as [| more] eqn:right; [lia |]. cbn [greedy].
    now rewrite while_subtracting, x_ends, y_ends by lia.
  - apply map_ext. intro i. unfold row. now rewrite so_far_compares, !up_to_mod, is_a, is_b.
  - now rewrite map_length, seq_length.
  - pose proof (columns_subtract x y columns) as down. pose proof (columns_subtract y x columns) as up.
    rewrite so_far_opposite, whole in up. rewrite whole in down.
    rewrite !number_up_to, is_a, is_b in * by lia.
    assert (map (result x y) (seq 0 columns) =
            map (if minus then column_difference y x else column_difference x y) (seq 0 columns)) as ->.
    { apply map_ext. intro i. unfold result, subtracted. fold minus. destruct minus; trivial.
      unfold column_difference. now rewrite (so_far_opposite x y). }
    rewrite its_sign. destruct (Nat.compare_spec a b), (Nat.ltb_spec a b); cbn in up, down; lia.
Qed.
