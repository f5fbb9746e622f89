(** * What a windowed adder reads and writes

    The text of a sum, the address of each of its tokens, the window through which a token sees the others, and greedy
    decoding. All of it for a next-token function about which nothing is known yet: weights do not occur here. *)

From Adder Require Export Numbers.

(** ** Texts *)

(** The vocabulary of the tokenizer: ["0123456789-+*=$"]. The end token is written [$]. *)
Inductive token := Digit (d : digit) | Minus | Plus | Times | Equals | End.

Definition text := list token.

(** [a+b=], and after it what is written so far; digits least significant first, nothing is filled up. *)
Definition prefix (x y written : list digit) : text :=
  map Digit x ++ Plus :: map Digit y ++ Equals :: map Digit written.

Definition question (a b : nat) : text := prefix (digits a) (digits b) [].

(** ** Addresses

    A token has a _number_ (which of the numbers of the text it belongs to, from 0) and an _index_ (its place in that
    number, from 1). A sign opens the number after it, at index 0. ::

        tokens      3 2 1 + 6 5 4 = 9 7
        number      0 0 0 1 1 1 1 2 2 2
        index       1 2 3 0 1 2 3 0 1 2                                                                            *)

Definition address : Type := nat * nat * token. (* number, index, and the token that has them *)

Fixpoint addresses (number index : nat) (t : text) : list address :=
  match t with
  | [] => []
  | Digit d :: rest => (number, S index, Digit d) :: addresses number (S index) rest
  | sign :: rest => (S number, 0, sign) :: addresses (S number) 0 rest
  end.

Definition index_of_last (t : text) : nat := snd (fst (last (addresses 0 0 t) (0, 0, End))).

(** ** The window

    The last token, of index i, asks for what stands in column i + 1. A key of index j is at _distance_ i + 1 - j, and
    it is masked unless that distance is 0 or 1. Of a key that is not masked the model knows its number, its distance
    and its token, and nothing else. *)

Definition key : Type := nat * nat * token. (* number, distance, token *)

Definition in_window (i : nat) (at_j : address) : bool :=
  let '(_, j, _) := at_j in (i <=? j) && (j <=? S i).

Definition as_key (i : nat) (at_j : address) : key :=
  let '(n, j, t) := at_j in (n, S i - j, t).

Definition seen (i : nat) (all : list address) : list key := map (as_key i) (filter (in_window i) all).

Definition visible (t : text) : list key := seen (index_of_last t) (addresses 0 0 t).

(** ** Contexts

    Five slots: the column that was written last (a digit of each operand and the one written under them), and the two
    digits of the column to write. [None] where a number has no such digit. *)

Record context := Context
  { a_here : option token; b_here : option token; written_here : option token;
    a_next : option token; b_next : option token }.

Definition slot (n distance : nat) (keys : list key) : option token :=
  option_map snd (find (fun '(m, d, _) => (m =? n) && (d =? distance)) keys).

Definition slots (keys : list key) : context :=
  Context (slot 0 1 keys) (slot 1 1 keys) (slot 2 1 keys) (slot 0 0 keys) (slot 1 0 keys).

(** The context of a text: what its last token sees, sorted into five slots. *)
Definition window (t : text) : context := slots (visible t).

(** ** Greedy decoding

    Ask for the next token, append it, and go on until it is the end token, for so many steps at most. *)

Fixpoint greedy (next : text -> token) (steps : nat) (t : text) : text :=
  match steps with
  | 0 => []
  | S fewer =>
      match next t with
      | End => [End]
      | token => token :: greedy next fewer (t ++ [token])
      end
  end.

(** ** The window of a sum

    So much for definitions. Now it is shown that in a text [a+b=c] the last token sees what the slots are named after,
    at every length, and that the five slots hold all that it sees. *)

Definition digit_at (l : list digit) (i : nat) : option token := option_map Digit (nth_error l i).

(** Digit i of a number, counted from 1; digit 0 is the sign before it, if there is one. *)
Definition digit_or_sign (sign : option token) (l : list digit) (i : nat) : option token :=
  match i with
  | 0 => sign
  | S j => digit_at l j
  end.

Definition context_of_sum (x y written : list digit) : context :=
  let i := length written in
  Context (digit_or_sign None x i) (digit_or_sign (Some Plus) y i) (digit_or_sign (Some Equals) written i)
          (digit_at x i) (digit_at y i).

(** The keys that a context stands for, in the order of the text. *)
Definition one_key (n distance : nat) (t : option token) : list key :=
  match t with
  | Some t => [(n, distance, t)]
  | None => []
  end.

Definition keys_of (c : context) : list key :=
  one_key 0 1 (a_here c) ++ one_key 0 0 (a_next c) ++
  one_key 1 1 (b_here c) ++ one_key 1 0 (b_next c) ++ one_key 2 1 (written_here c).

Lemma slots_keys_of : forall c, slots (keys_of c) = c.
Proof. intros [[a |] [b |] [c |] [a' |] [b' |]]; reflexivity. Qed.

Lemma addresses_digits : forall l n i rest,
  addresses n i (map Digit l ++ rest) = addresses n i (map Digit l) ++ addresses n (i + length l) rest.
Proof.
  induction l as [| d l hypothesis]; intros; simpl.
  - now rewrite Nat.add_0_r.
  - rewrite hypothesis. now rewrite Nat.add_succ_r.
Qed.

Lemma addresses_prefix : forall x y written,
  addresses 0 0 (prefix x y written) =
  addresses 0 0 (map Digit x) ++ (1, 0, Plus) :: addresses 1 0 (map Digit y) ++
  (2, 0, Equals) :: addresses 2 0 (map Digit written).
Proof. intros. unfold prefix. rewrite addresses_digits. simpl. now rewrite addresses_digits. Qed.

Lemma index_of_last_prefix : forall x y written, index_of_last (prefix x y written) = length written.
Proof.
  assert (forall l n i default, l <> [] ->
    snd (fst (last (addresses n i (map Digit l)) default)) = i + length l) as of_digits.
  { induction l as [| d [| e l] hypothesis]; intros; [congruence | simpl; lia |].
    change (last (addresses n i (map Digit (d :: e :: l))) default)
      with (last (addresses n (S i) (map Digit (e :: l))) default).
    rewrite hypothesis by discriminate. simpl. lia. }
  assert (forall (l m : list address) default, m <> [] -> last (l ++ m) default = last m default) as last_app.
  { induction l as [| e l hypothesis]; intros; trivial. rewrite <- (hypothesis m default) by trivial. simpl.
    destruct (l ++ m) eqn:empty; trivial. apply app_eq_nil in empty. tauto. }
  intros. unfold index_of_last. rewrite addresses_prefix, app_comm_cons, app_assoc, last_app by discriminate.
  destruct written as [| d l]; trivial.
  change (last ((2, 0, Equals) :: addresses 2 0 (map Digit (d :: l))) (0, 0, End))
    with (last (addresses 2 0 (map Digit (d :: l))) (0, 0, End)).
  now rewrite of_digits.
Qed.

Lemma seen_app : forall i l m, seen i (l ++ m) = seen i l ++ seen i m.
Proof. intros. unfold seen. now rewrite filter_app, map_app. Qed.

(** Digits further on than column i + 1 are masked ... *)
Lemma seen_later : forall l n i j, i < j -> seen i (addresses n j (map Digit l)) = [].
Proof.
  induction l as [| d l hypothesis]; intros n i j later; trivial.
  unfold seen in *. simpl. destruct (Nat.leb_spec i (S j)), (Nat.leb_spec j i); try lia; simpl; apply hypothesis; lia.
Qed.

(** ... and of all others at most two are not. Here [j] digits of the number stand before those in the list. *)
Lemma seen_digits : forall l n j i,
  seen (j + i) (addresses n j (map Digit l)) =
  one_key n 1 (digit_or_sign None l i) ++ one_key n 0 (digit_at l i).
Proof.
  induction l as [| d l hypothesis]; intros.
  - now destruct i as [| [| i]].
  - change (addresses n j (map Digit (d :: l)))
      with ([(n, S j, Digit d)] ++ addresses n (S j) (map Digit l)).
    rewrite seen_app. unfold seen at 1. cbn [filter in_window].
    destruct i as [| [| i]].
    + rewrite Nat.add_0_r, seen_later by lia.
      destruct (Nat.leb_spec j (S j)), (Nat.leb_spec (S j) (S j)); try lia.
      cbn [andb map as_key]. now rewrite Nat.sub_diag.
    + replace (j + 1) with (S j + 0) by lia. rewrite hypothesis.
      destruct (Nat.leb_spec (S j + 0) (S j)), (Nat.leb_spec (S j) (S (S j + 0))); try lia.
      cbn [andb map as_key]. now replace (S (S j + 0) - S j) with 1 by lia.
    + replace (j + S (S i)) with (S j + S i) by lia. rewrite hypothesis.
      now destruct (Nat.leb_spec (S j + S i) (S j)); [lia |].
Qed.

Lemma seen_sign : forall i n sign, seen i [(n, 0, sign)] = one_key n 1 (digit_or_sign (Some sign) [] i).
Proof. now destruct i as [| [| i]]. Qed.

(** Step 1 of the chapter: at every length, the last token sees these five and no others. *)
Theorem visible_is_context : forall x y written, visible (prefix x y written) = keys_of (context_of_sum x y written).
Proof.
  assert (forall l i, length l <= i -> digit_at l i = None) as ended.
  { intros l i beyond. unfold digit_at. now rewrite (proj2 (nth_error_None l i)). }
  intros. unfold visible. rewrite index_of_last_prefix, addresses_prefix.
  change ((1, 0, Plus) :: ?l) with ([(1, 0, Plus)] ++ l). change ((2, 0, Equals) :: ?l) with ([(2, 0, Equals)] ++ l).
  rewrite !seen_app, !seen_sign, !(fun l n => seen_digits l n 0 (length written)).
  unfold keys_of, context_of_sum, digit_or_sign. destruct written as [| d l]; simpl; trivial.
  rewrite (ended []), (ended (d :: l) (S (length l))) by (simpl; lia).
  simpl. now rewrite <- !app_assoc, app_nil_r.
Qed.

Corollary window_of_sum : forall x y written, window (prefix x y written) = context_of_sum x y written.
Proof. intros. unfold window. now rewrite visible_is_context, slots_keys_of. Qed.
