(** * From contexts to all sums

    Step 4 of the chapter: what is right in every context of the list adds all pairs of numbers, of every length. *)

From Adder Require Export Contexts.

(** ** Addition by columns

    [x] and [y] are digits of two numbers, columns are counted from 0, and beyond its last digit a number has none. *)

Section Columns.

Variables x y : list digit.

Fixpoint carry_into (i : nat) : nat :=
  match i with
  | 0 => 0
  | S j => (worth (nth_error x j) + worth (nth_error y j) + carry_into j) / 10
  end.

Definition column_total (i : nat) : nat := worth (nth_error x i) + worth (nth_error y i) + carry_into i.

Definition written (i : nat) : digit := digit_of (column_total i).

Definition columns_of_both : nat := max (length x) (length y).

(** As many digits as the longer number has, and a 1 if a carry goes out of the last column. *)
Definition length_of_sum : nat := columns_of_both + carry_into columns_of_both.

Definition sum_by_columns : list digit := map written (seq 0 length_of_sum).

Lemma carry_at_most_one : forall i, carry_into i <= 1.
Proof.
  assert (forall d, worth d < 10) as below by (intros [d |]; simpl; [apply value_below_ten | lia]).
  induction i as [| i hypothesis]; simpl; [lia |].
  pose proof (below (nth_error x i)). pose proof (below (nth_error y i)). lia.
Qed.

Lemma carry_step : forall i, carry_into (S i) = column_total i / 10.
Proof. reflexivity. Qed.

Lemma value_written : forall i, value (written i) = column_total i mod 10.
Proof. intro. apply value_digit_of. Qed.

Lemma both_ended : forall i, columns_of_both <= i -> nth_error x i = None /\ nth_error y i = None.
Proof. intros i beyond. unfold columns_of_both in beyond. split; apply nth_error_None; lia. Qed.

Lemma no_carry_at_the_end : carry_into length_of_sum = 0.
Proof.
  unfold length_of_sum. pose proof (carry_at_most_one columns_of_both) as one.
  destruct (carry_into columns_of_both) as [| [| c]] eqn:carry; [now rewrite Nat.add_0_r | | lia].
  rewrite Nat.add_1_r. simpl. destruct (both_ended columns_of_both) as [-> ->]; [lia |]. now rewrite carry.
Qed.

End Columns.

(** *** It is addition *)

Lemma nth_error_beyond : forall (l : list digit) i, length l <= i -> nth_error l i = None.
Proof. intros. now apply nth_error_None. Qed.

(** The number that the first [m] digits stand for. *)
Fixpoint up_to (m : nat) (l : list digit) : nat :=
  match m with
  | 0 => 0
  | S i => up_to i l + 10 ^ i * worth (nth_error l i)
  end.

Lemma up_to_cons : forall m d l, up_to (S m) (d :: l) = value d + 10 * up_to m l.
Proof.
  induction m as [| m hypothesis]; intros; [simpl; lia |].
  change (up_to (S (S m)) (d :: l)) with (up_to (S m) (d :: l) + 10 ^ S m * worth (nth_error l m)).
  rewrite hypothesis. simpl. lia.
Qed.

Lemma number_up_to : forall l m, length l <= m -> up_to m l = number l.
Proof.
  induction l as [| d l hypothesis]; intros m enough.
  - induction m as [| m IH]; trivial. simpl in *. rewrite IH by lia. destruct m; simpl; lia.
  - destruct m as [| m]; simpl in enough; [lia |]. rewrite up_to_cons, hypothesis by lia. reflexivity.
Qed.

Lemma columns_add : forall x y m,
  number (map (written x y) (seq 0 m)) + 10 ^ m * carry_into x y m = up_to m x + up_to m y.
Proof.
  induction m as [| m hypothesis]; trivial.
  rewrite seq_S, map_app, number_app, map_length, seq_length, carry_step. cbn [plus map number up_to].
  rewrite value_written. pose proof (Nat.div_mod_eq (column_total x y m) 10) as split.
  unfold column_total in *. rewrite Nat.pow_succ_r'. nia.
Qed.

Theorem sum_is_right : forall x y, number (sum_by_columns x y) = number x + number y.
Proof.
  intros. pose proof (columns_add x y (length_of_sum x y)) as whole. rewrite no_carry_at_the_end in whole.
  rewrite !number_up_to in whole by (unfold length_of_sum, columns_of_both; lia). unfold sum_by_columns. lia.
Qed.

(** *** It is written properly *)

Lemma last_digit : forall (l : list digit) d i, nth_error l i = Some d -> length l <= S i -> last l d1 = d.
Proof.
  induction l as [| e [| f l] hypothesis]; intros d [| i] there enough; simpl in *; try congruence; try lia.
  - now destruct i.
  - apply (hypothesis d i there). lia.
Qed.

(** A zero is the last digit of 0 alone. *)
Lemma zero_last : forall l i, proper l -> nth_error l i = Some d0 -> length l <= S i -> i = 0.
Proof.
  intros l i [-> | [_ nonzero]] there enough.
  - destruct i as [| [| i]]; simpl in there; congruence.
  - now rewrite (last_digit l d0 i) in nonzero.
Qed.

Lemma proper_some : forall l, proper l -> 0 < length l.
Proof. intros [| d l] [| []]; simpl; (congruence || lia). Qed.

Theorem sum_is_proper : forall x y, proper x -> proper y -> proper (sum_by_columns x y).
Proof.
  intros x y proper_x proper_y. pose proof (proper_some x proper_x). pose proof (proper_some y proper_y).
  assert (forall m, last (map (written x y) (seq 0 (S m))) d1 = written x y m) as last_written.
  { intro m. rewrite seq_S, map_app. apply last_last. }
  unfold sum_by_columns, length_of_sum. pose proof (carry_at_most_one x y (columns_of_both x y)) as one.
  destruct (columns_of_both x y) as [| m] eqn:both; [unfold columns_of_both in both; lia |].
  destruct (carry_into x y (S m)) as [| [| c]] eqn:carry; [| | lia].
  - rewrite Nat.add_0_r. destruct (written x y m) eqn:last;
      try (right; split; [now rewrite seq_S, map_app; intros []%app_eq_nil | now rewrite last_written, last]).
    left. pose proof (value_written x y m) as zero. rewrite last in zero. simpl in zero.
    rewrite carry_step in carry. unfold column_total in *.
    assert (forall l, proper l -> length l = S m -> worth (nth_error l m) = 0 -> m = 0) as only_zero.
    { intros l proper_l long worthless. destruct (nth_error l m) as [d |] eqn:there.
      - apply (zero_last l m proper_l); [| lia]. rewrite there. f_equal. now apply value_injective.
      - apply nth_error_None in there. lia. }
    assert (m = 0) as -> by (unfold columns_of_both in both; destruct (Nat.max_spec (length x) (length y))
      as [[_ longer] | [_ longer]]; [apply (only_zero y) | apply (only_zero x)]; trivial; lia).
    simpl. now rewrite last.
  - right. rewrite Nat.add_1_r. split; [now rewrite seq_S, map_app; intros []%app_eq_nil |].
    rewrite last_written. unfold written, column_total. destruct (both_ended x y (S m)) as [-> ->]; [lia |].
    now rewrite carry.
Qed.

(** The digits of a + b are those that the columns give. *)
Corollary digits_of_sum : forall a b, digits (a + b) = sum_by_columns (digits a) (digits b).
Proof.
  intros. apply written_one_way; auto using digits_proper, sum_is_proper.
  now rewrite sum_is_right, !number_digits.
Qed.

(** ** The columns of a sum are among those that the search found *)

Section Induction.

Variables x y : list digit.
Hypothesis proper_x : proper x.
Hypothesis proper_y : proper y.

(** The column that was written last, after [i] steps. *)
Definition column_after (i : nat) : column :=
  match i with
  | 0 => Signs
  | S j => Column (nth_error x j) (nth_error y j) (written x y j) (10 <=? column_total x y j) (j =? 0)
  end.

Lemma its_carry : forall i, Nat.b2n (carry_of (column_after i)) = carry_into x y i.
Proof.
  intros [| j]; trivial. pose proof (carry_at_most_one x y (S j)) as one. rewrite carry_step in *.
  unfold column_after, carry_of. destruct (Nat.leb_spec 10 (column_total x y j)); simpl Nat.b2n; lia.
Qed.

Lemma its_total : forall i, total (column_after i) (nth_error x i) (nth_error y i) = column_total x y i.
Proof. intro. unfold total. now rewrite its_carry. Qed.

Lemma next_column : forall i, following (column_after i) (nth_error x i) (nth_error y i) = column_after (S i).
Proof. intro. unfold following. rewrite its_total. now destruct i. Qed.

Lemma number_goes_on : forall l j, proper l -> may_follow (j =? 0) (nth_error l j) (nth_error l (S j)) = true.
Proof.
  intros l j proper_l. destruct (nth_error l j) as [d |] eqn:here, (nth_error l (S j)) as [e |] eqn:next; trivial.
  - now destruct d.
  - apply nth_error_None in next. destruct d; trivial. simpl. now rewrite (zero_last l j).
  - apply nth_error_None in here. rewrite nth_error_beyond in next by lia. discriminate.
Qed.

Lemma its_allowed : forall i, allowed (column_after i) (nth_error x i) (nth_error y i) = true.
Proof.
  intros [| j]; apply andb_true_iff; split; try now apply number_goes_on.
  - destruct x; trivial. now apply proper_some in proper_x.
  - destruct y; trivial. now apply proper_some in proper_y.
Qed.

Lemma right_digit : forall i, i < length_of_sum x y ->
  right (column_after i) (nth_error x i) (nth_error y i) = Digit (written x y i).
Proof.
  intros i inside. unfold right. rewrite its_total. fold (written x y i).
  destruct (nth_error x i) eqn:in_x, (nth_error y i) eqn:in_y, (carry_of (column_after i)) eqn:carry; trivial.
  apply nth_error_None in in_x, in_y. pose proof (its_carry i) as none. rewrite carry in none. simpl in none.
  unfold length_of_sum in inside. pose proof (carry_at_most_one x y (columns_of_both x y)).
  assert (i = columns_of_both x y) as -> by (unfold columns_of_both in *; lia). lia.
Qed.

Lemma right_end :
  let i := length_of_sum x y in right (column_after i) (nth_error x i) (nth_error y i) = End.
Proof.
  simpl. destruct (both_ended x y (length_of_sum x y)) as [-> ->]; [unfold length_of_sum; lia |].
  unfold right. pose proof (its_carry (length_of_sum x y)) as none. rewrite no_carry_at_the_end in none.
  now destruct (carry_of (column_after (length_of_sum x y))).
Qed.

(** The induction: from the signs on, one column after the other. *)
Lemma all_reachable : forall i, i <= length_of_sum x y -> reachable (column_after i).
Proof.
  induction i as [| i hypothesis]; intro inside; [apply at_the_signs |].
  rewrite <- next_column. apply one_more; [apply hypothesis; lia | apply its_allowed |].
  now rewrite right_digit.
Qed.

(** After [i] right digits the window shows the context of that column. *)
Lemma window_after : forall i,
  window (prefix x y (map (written x y) (seq 0 i))) = context_of (column_after i) (nth_error x i) (nth_error y i).
Proof.
  assert (forall j, digit_at (map (written x y) (seq 0 (S j))) j = Some (Digit (written x y j))) as last_written.
  { intro j. unfold digit_at. rewrite seq_S, map_app, nth_error_app2; rewrite map_length, seq_length; trivial.
    now rewrite Nat.sub_diag. }
  intro i. rewrite window_of_sum. unfold context_of_sum. rewrite map_length, seq_length.
  destruct i as [| j]; trivial. unfold digit_or_sign. now rewrite last_written.
Qed.

(** Decoding, from after [i] right digits to the end. *)
Lemma greedy_from : forall next,
  (forall i, i <= length_of_sum x y -> next (prefix x y (map (written x y) (seq 0 i))) =
                                       right (column_after i) (nth_error x i) (nth_error y i)) ->
  forall rest i steps, i + rest = length_of_sum x y -> rest < steps ->
  greedy next steps (prefix x y (map (written x y) (seq 0 i))) = map Digit (map (written x y) (seq i rest)) ++ [End].
Proof.
  intros next follows. induction rest as [| rest hypothesis]; intros i [| steps] all enough; try lia; simpl.
  - rewrite Nat.add_0_r in all. rewrite follows, all, right_end by lia. reflexivity.
  - rewrite follows, right_digit by lia. rewrite <- (hypothesis (S i) steps) by lia.
    enough (prefix x y (map (written x y) (seq 0 i)) ++ [Digit (written x y i)] =
            prefix x y (map (written x y) (seq 0 (S i)))) as -> by reflexivity.
    rewrite seq_S. unfold prefix. rewrite !map_app, <- app_assoc. simpl. now rewrite <- app_assoc.
Qed.

End Induction.

(** ** The theorem *)

(** Let the next token after [a+b=c] be decided by the context alone, and rightly in every context of the list. Then
    greedy decoding after [a+b=] writes the digits of [a + b], the least significant first, and then the end token,
    whatever the numbers, if only it may take as many steps. *)
Theorem adds_all_numbers :
  forall (next : text -> token) (decide : context -> token),
    (forall x y written,
      next (prefix x y written) =
        decide (window (prefix x y written))) ->
    (forall c t, In (c, t) table -> decide c = t) ->
    forall a b steps : nat,
      length (digits (a + b)) < steps ->
      greedy next steps (question a b) =
        map Digit (digits (a + b)) ++ [End].
Proof.
  intros next decide local is_right a b steps enough. rewrite digits_of_sum in *.
  unfold sum_by_columns in *. rewrite map_length, seq_length in enough.
  apply (greedy_from (digits a) (digits b)) with (i := 0); trivial.
  intros i inside. rewrite local, window_after. apply is_right, table_is_what_occurs, there.
  - apply all_reachable; auto using digits_proper.
  - apply its_allowed; auto using digits_proper.
Qed.

(** The same for a network of which only this is known: a next token depends on the keys that are not masked. *)
Corollary adds_if_masked :
  forall (next : text -> token) (decide : list key -> token),
    (forall x y written, next (prefix x y written) = decide (visible (prefix x y written))) ->
    (forall c t, In (c, t) table -> decide (keys_of c) = t) ->
    forall a b steps : nat,
      length (digits (a + b)) < steps ->
      greedy next steps (question a b) =
        map Digit (digits (a + b)) ++ [End].
Proof.
  intros next decide local is_right. apply (adds_all_numbers next (fun c => decide (keys_of c))); trivial.
  intros. now rewrite local, window_of_sum, visible_is_context.
Qed.
