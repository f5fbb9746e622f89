(** * Keys in slots

    What a model knows of a key that it sees is in which of a few slots it is, and which token. Where these slots are is
    said in the files on subtraction and on multiplication; here is what both need of lists of keys. *)

From Adder Require Export Adder.

Section Slots.

Context {place name : Type}.

(** The slot of a key, [None] if it is masked; so many tokens come after it. *)
Variable slot_of : place * token -> nat -> option name.

(** What is in the slots, in the order of the text, if so many more tokens come after these. *)
Fixpoint in_slots (more : nat) (all : list (place * token)) : list (name * token) :=
  match all with
  | [] => []
  | k :: later =>
      match slot_of k (length later + more) with Some s => [(s, snd k)] | None => [] end ++ in_slots more later
  end.

Lemma in_slots_app : forall more l m, in_slots more (l ++ m) = in_slots (length m + more) l ++ in_slots more m.
Proof.
  induction l as [| k l hypothesis]; intros; trivial. simpl.
  now rewrite app_length, hypothesis, <- app_assoc, Nat.add_assoc.
Qed.

Definition in_slot (s : name) (t : option token) : list (name * token) :=
  match t with Some t => [(s, t)] | None => [] end.

(** The keys of a run of digits, after [j] others of their number. *)
Variable at_index : nat -> place.

Fixpoint run (j : nat) (l : list digit) : list (place * token) :=
  match l with
  | [] => []
  | d :: rest => (at_index (S j), Digit d) :: run (S j) rest
  end.

Lemma length_run : forall l j, length (run j l) = length l.
Proof. induction l; simpl; congruence. Qed.

(** Of a run, that one digit whose index is the target ... *)
Lemma by_index : forall s target least,
  (forall j d back, least <= back -> slot_of (at_index (S j), Digit d) back = if S j =? target then Some s else None) ->
  forall l more, least <= more -> in_slots more (run 0 l) = in_slot s (digit_or_sign None l target).
Proof.
  intros s target least selects l more enough.
  assert (forall l j, in_slots more (run j l) = if j <? target then in_slot s (digit_at l (target - S j)) else [])
    as general.
  { clear l. induction l as [| d l hypothesis]; intro j; [now destruct (j <? target), (target - S j) |].
    cbn [run in_slots snd]. rewrite selects, hypothesis by lia.
    destruct (Nat.eqb_spec (S j) target) as [same | other], (Nat.ltb_spec (S j) target), (Nat.ltb_spec j target);
      try lia; trivial.
    - now replace (target - S j) with 0 by lia.
    - now replace (target - S j) with (S (target - S (S j))) by lia. }
  rewrite general. destruct target as [| i]; trivial. simpl. now rewrite Nat.sub_0_r.
Qed.

(** ... or none, ... *)
Lemma by_none : forall least,
  (forall j d back, least <= back -> slot_of (at_index (S j), Digit d) back = None) ->
  forall l more, least <= more -> in_slots more (run 0 l) = [].
Proof.
  intros least masks l more enough. generalize 0 as j. induction l as [| d l hypothesis]; intro j; trivial.
  cbn [run in_slots snd]. now rewrite masks, hypothesis by lia.
Qed.

(** ... or the last, ... *)
Lemma by_last : forall s more,
  (forall j d back, slot_of (at_index (S j), Digit d) (back + more) = if back =? 0 then Some s else None) ->
  forall l, in_slots more (run 0 l) = in_slot s (digit_or_sign None l (length l)).
Proof.
  intros s more selects l. generalize 0 as j. induction l as [| d l hypothesis]; intro j; trivial.
  cbn [run in_slots snd]. rewrite length_run, selects, hypothesis. now destruct l.
Qed.

(** ... or the last two. *)
Lemma by_last_two : forall s s',
  (forall j d back, slot_of (at_index (S j), Digit d) back =
     match back with 0 => Some s | 1 => Some s' | _ => None end) ->
  forall l, in_slots 0 (run 0 l) =
    in_slot s' (digit_or_sign None l (length l - 1)) ++ in_slot s (digit_or_sign None l (length l)).
Proof.
  intros s s' selects l. generalize 0 at 2 as j. induction l as [| d l hypothesis]; intro j; trivial.
  cbn [run in_slots snd]. rewrite length_run, selects, hypothesis, Nat.add_0_r. now destruct l as [| e [| f l]].
Qed.

Lemma last_of_run : forall l k default, exists t,
  last (k :: run 0 l) default = match l with [] => k | _ => (at_index (length l), t) end.
Proof.
  assert (forall l j k default, l <> [] -> exists t, last (k :: run j l) default = (at_index (j + length l), t))
    as general.
  { induction l as [| d [| e l] hypothesis]; intros j k default some; [congruence | |].
    - exists (Digit d). simpl. now rewrite Nat.add_1_r.
    - destruct (hypothesis (S j) (at_index (S j), Digit d) default) as [t last]; [discriminate |]. exists t.
      transitivity (at_index (S j + length (e :: l)), t); [exact last |]. simpl. now rewrite !Nat.add_succ_r. }
  intros [| d l] k default; [now exists End |]. apply (general (d :: l) 0 k). discriminate.
Qed.

End Slots.

Lemma last_app : forall (A : Type) (l m : list A) default, m <> [] -> last (l ++ m) default = last m default.
Proof.
  induction l as [| e l hypothesis]; intros m default some; trivial. rewrite <- (hypothesis m default) by trivial.
  simpl. destruct (l ++ m) eqn:empty; trivial. apply app_eq_nil in empty. tauto.
Qed.

Lemma digit_of_run : forall (w : nat -> digit) n j, j < n -> digit_at (map w (seq 0 n)) j = Some (Digit (w j)).
Proof.
  intros w n j less. unfold digit_at. rewrite nth_error_map, nth_error_nth' with (d := 0) by (now rewrite seq_length).
  now rewrite seq_nth.
Qed.

(** *** Steps of decoding *)

Lemma greedy_step : forall next t u steps,
  next t = u -> u <> End -> greedy next (S steps) t = u :: greedy next steps (t ++ [u]).
Proof. intros next t u steps <- goes_on. simpl. destruct (next t); (reflexivity || congruence). Qed.

(** A run of digits, one after the other. *)
Lemma greedy_digits : forall next (w : nat -> digit) t n steps,
  n <= steps ->
  (forall i, i < n -> next (t ++ map Digit (map w (seq 0 i))) = Digit (w i)) ->
  let so_far := map Digit (map w (seq 0 n)) in
  greedy next steps t = so_far ++ greedy next (steps - n) (t ++ so_far).
Proof.
  induction n as [| n hypothesis]; intros steps enough follows; [simpl; now rewrite app_nil_r, Nat.sub_0_r |].
  cbv zeta in *. rewrite hypothesis by (try lia; intros; apply follows; lia).
  destruct (steps - n) as [| fewer] eqn:left; [lia |]. replace (steps - S n) with fewer by lia.
  cbn [greedy]. rewrite follows by lia. now rewrite seq_S, !map_app, <- !app_assoc.
Qed.

(** *** Digits below a place *)

Lemma up_to_below : forall l m, up_to m l < 10 ^ m.
Proof.
  induction m as [| m hypothesis]; simpl up_to; [simpl; lia |].
  assert (worth (nth_error l m) < 10) by (destruct (nth_error l m); simpl; [apply value_below_ten | lia]).
  rewrite Nat.pow_succ_r'. nia.
Qed.

Lemma up_to_mod : forall l m, up_to m l = number l mod 10 ^ m.
Proof.
  assert (forall m l, number l = up_to m l + 10 ^ m * number (skipn m l)) as split.
  { induction m as [| m hypothesis]; intro l; [simpl; lia |]. destruct l as [| d l].
    - rewrite number_up_to by (simpl; lia). simpl. lia.
    - rewrite up_to_cons. cbn [number skipn]. rewrite (hypothesis l) at 1. rewrite Nat.pow_succ_r'. lia. }
  intros. rewrite (split m l) at 1. rewrite Nat.mul_comm, Nat.mod_add by (apply Nat.pow_nonzero; lia).
  symmetry. apply Nat.mod_small, up_to_below.
Qed.
