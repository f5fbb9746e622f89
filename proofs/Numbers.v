(** * Numbers, as they are written

    A number is written as its decimal digits, the least significant first: 120 is [0; 2; 1]. This file says what the
    digits of a number are, what number a list of digits stands for, and that each number is written in one way only. *)

From Coq Require Export List Arith Bool ZArith ZifyNat Lia.
Export ListNotations.

(** From here on the tactic [lia], which settles linear arithmetic, also knows what [/] and [mod] mean,
    and [simpl] leaves them as they are. *)
Ltac Zify.zify_post_hook ::= Z.to_euclidean_division_equations.
Global Arguments Nat.div : simpl never.
Global Arguments Nat.modulo : simpl never.

(** ** Digits *)

Inductive digit := d0 | d1 | d2 | d3 | d4 | d5 | d6 | d7 | d8 | d9.

Definition all_digits := [d0; d1; d2; d3; d4; d5; d6; d7; d8; d9].

Definition value (d : digit) : nat :=
  match d with
  | d0 => 0 | d1 => 1 | d2 => 2 | d3 => 3 | d4 => 4 | d5 => 5 | d6 => 6 | d7 => 7 | d8 => 8 | d9 => 9
  end.

(** The last digit of [n]. *)
Definition digit_of (n : nat) : digit := nth (n mod 10) all_digits d0.

Lemma value_below_ten : forall d, value d < 10.
Proof. destruct d; simpl; lia. Qed.

Lemma value_injective : forall d e, value d = value e -> d = e.
Proof. destruct d, e; simpl; congruence. Qed.

Lemma value_digit_of : forall n, value (digit_of n) = n mod 10.
Proof.
  intro n. unfold digit_of. assert (n mod 10 < 10) as below by lia.
  destruct (n mod 10) as [|[|[|[|[|[|[|[|[|[|r]]]]]]]]]]; simpl; lia.
Qed.

(** ** Numbers *)

(** What a list of digits stands for. *)
Fixpoint number (l : list digit) : nat :=
  match l with
  | [] => 0
  | d :: rest => value d + 10 * number rest
  end.

(** A number is written properly as 0, or with a last (most significant) digit that is not 0. *)
Definition proper (l : list digit) : Prop := l = [d0] \/ (l <> [] /\ last l d1 <> d0).

(** The digits of [n]: those of numbers below [S fuel], and [n] itself is fuel enough. *)
Fixpoint digits_within (fuel n : nat) : list digit :=
  match fuel with
  | 0 => [digit_of n]
  | S less => if n <? 10 then [digit_of n] else digit_of n :: digits_within less (n / 10)
  end.

Definition digits (n : nat) : list digit := digits_within n n.

Example how_120_is_written : digits 120 = [d0; d2; d1].
Proof. reflexivity. Qed.

(** ** They agree *)

Lemma number_app : forall l m, number (l ++ m) = number l + 10 ^ length l * number m.
Proof. induction l; intro m; simpl; [| rewrite IHl]; lia. Qed.

Lemma number_digits : forall n, number (digits n) = n.
Proof.
  assert (forall fuel n, n <= fuel -> number (digits_within fuel n) = n) as general.
  { induction fuel; intros n enough; simpl.
    - rewrite value_digit_of. lia.
    - destruct (Nat.ltb_spec n 10); simpl; rewrite value_digit_of; [| rewrite IHfuel]; lia. }
  intro n. now apply general.
Qed.

Lemma last_cons : forall (d : digit) l m, l <> [] -> last (d :: l) m = last l m.
Proof. destruct l; simpl; congruence. Qed.

Lemma digits_proper : forall n, proper (digits n).
Proof.
  assert (forall fuel n, n <= fuel -> 0 < n -> digits_within fuel n <> [] /\ last (digits_within fuel n) d1 <> d0)
    as general.
  { induction fuel; intros n enough positive; simpl; [lia |].
    destruct (Nat.ltb_spec n 10) as [small |].
    - split; [discriminate |]. simpl. intro zero. pose proof (value_digit_of n) as same.
      rewrite zero in same. simpl in same. lia.
    - destruct (IHfuel (n / 10)) as [some nonzero]; [lia | lia |].
      split; [discriminate |]. now rewrite last_cons. }
  intro n. destruct n as [| n].
  - now left.
  - right. apply general; lia.
Qed.

(** ** There is no other way to write a number *)

Lemma positive : forall l, l <> [] -> last l d1 <> d0 -> 0 < number l.
Proof.
  induction l as [| d l hypothesis]; [congruence |]. intros _ nonzero. destruct l as [| e l].
  - simpl in *. destruct d; simpl; try lia. congruence.
  - rewrite last_cons in nonzero by discriminate. cbn [number].
    specialize (hypothesis ltac:(discriminate) nonzero). cbn [number] in hypothesis. lia.
Qed.

Lemma same_digits : forall l m, last l d1 <> d0 -> last m d1 <> d0 -> number l = number m -> l = m.
Proof.
  assert (forall (d : digit) l, last (d :: l) d1 <> d0 -> last l d1 <> d0) as tail.
  { intros d [| e l] nonzero; [discriminate | now rewrite last_cons in nonzero by discriminate]. }
  induction l as [| d l hypothesis]; intros [| e m] nonzero_l nonzero_m same; trivial.
  - pose proof (positive (e :: m) ltac:(discriminate) nonzero_m). cbn [number] in *. lia.
  - pose proof (positive (d :: l) ltac:(discriminate) nonzero_l). cbn [number] in *. lia.
  - cbn [number] in same. pose proof (value_below_ten d). pose proof (value_below_ten e).
    rewrite (value_injective d e) by lia. f_equal. apply hypothesis; eauto. lia.
Qed.

Theorem written_one_way : forall l m, proper l -> proper m -> number l = number m -> l = m.
Proof.
  intros l m [-> | [some nonzero]] [-> | [some' nonzero']] same; trivial.
  - pose proof (positive m some' nonzero'). simpl in same. lia.
  - pose proof (positive l some nonzero). simpl in same. lia.
  - now apply same_digits.
Qed.
